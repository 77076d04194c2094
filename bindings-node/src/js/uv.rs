//! The handles of Node's event loop that are used here. Node exports libuv's functions to addons.

use std::ffi::{c_int, c_void};
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::rc::Rc;
use std::time::Duration;

use mirab::{Error, ErrorKind, Result};

/// What is told when something has happened to one of its handles.
pub(super) trait Listener {
    /// On the loop's thread.
    fn called(this: &Rc<Self>);
}

type Callback = unsafe extern "C" fn(*mut c_void);
type PollCallback = unsafe extern "C" fn(*mut c_void, c_int, c_int);

unsafe extern "C" {
    fn uv_handle_size(kind: c_int) -> usize;
    fn uv_handle_set_data(handle: *mut c_void, data: *mut c_void);
    fn uv_handle_get_data(handle: *const c_void) -> *mut c_void;
    fn uv_close(handle: *mut c_void, done: Callback);
    fn uv_ref(handle: *mut c_void);
    fn uv_unref(handle: *mut c_void);
    fn uv_poll_init(uv: *mut c_void, handle: *mut c_void, fd: c_int) -> c_int;
    fn uv_poll_start(handle: *mut c_void, events: c_int, then: PollCallback) -> c_int;
    fn uv_timer_init(uv: *mut c_void, handle: *mut c_void) -> c_int;
    fn uv_timer_start(handle: *mut c_void, then: Callback, ms: u64, again: u64) -> c_int;
    fn uv_timer_stop(handle: *mut c_void) -> c_int;
}

// Their numbers in `uv_handle_type` and `uv_poll_event`, which are the same in every libuv 1.
const POLL: c_int = 8;
const TIMER: c_int = 13;
const READABLE: c_int = 1;
const WRITABLE: c_int = 2;

/// A handle, which keeps its listener until it is closed. It does not keep the process alive, unless told to.
pub(super) struct Handle<L: Listener> {
    raw: NonNull<c_void>,
    listener: std::marker::PhantomData<Rc<L>>,
}

impl<L: Listener> Handle<L> {
    /// A descriptor that is watched.
    pub fn poll(uv: *mut c_void, fd: RawFd, listener: &Rc<L>) -> Result<Self> {
        // SAFETY: the loop is alive, as in every function here: it is the one of a living environment.
        Self::new(POLL, listener, |raw| unsafe { uv_poll_init(uv, raw, fd) })
    }

    /// A timer.
    pub fn timer(uv: *mut c_void, listener: &Rc<L>) -> Result<Self> {
        // SAFETY: see `poll`.
        Self::new(TIMER, listener, |raw| unsafe { uv_timer_init(uv, raw) })
    }

    fn new(kind: c_int, listener: &Rc<L>, init: impl FnOnce(*mut c_void) -> c_int) -> Result<Self> {
        // SAFETY: the memory is as large as libuv says, and aligned for anything; it is freed when libuv has
        // closed the handle, or has refused to make it. The listener's count is taken back then, too.
        unsafe {
            let raw = libc::malloc(uv_handle_size(kind));
            let Some(handle) = NonNull::new(raw) else { return Err(failed("memory", 0)) };
            let status = init(raw);
            if status != 0 {
                libc::free(raw);
                return Err(failed("a handle", status));
            }
            uv_handle_set_data(raw, Rc::into_raw(Rc::clone(listener)).cast_mut().cast());
            uv_unref(raw);
            Ok(Self { raw: handle, listener: std::marker::PhantomData })
        }
    }

    /// Watches the descriptor of a poll for reading, and for writing where asked.
    pub fn watch(&self, writes: bool) -> Result<()> {
        let events = READABLE | if writes { WRITABLE } else { 0 };
        // SAFETY: the handle is open, as in every method: closing takes it.
        started(unsafe { uv_poll_start(self.raw.as_ptr(), events, on_poll::<L>) })
    }

    /// Sets a timer: it calls once, or never where there is no time.
    pub fn set(&self, within: Option<Duration>) -> Result<()> {
        // SAFETY: see `watch`.
        started(unsafe {
            match within {
                Some(time) => {
                    let ms = time.as_micros().div_ceil(1000) as u64;
                    uv_timer_start(self.raw.as_ptr(), on_call::<L>, ms, 0)
                }
                None => uv_timer_stop(self.raw.as_ptr()),
            }
        })
    }

    /// Says whether it keeps the process alive while it is active.
    pub fn keep_alive(&self, keeps: bool) {
        // SAFETY: see `watch`.
        unsafe { if keeps { uv_ref(self.raw.as_ptr()) } else { uv_unref(self.raw.as_ptr()) } }
    }

    /// Stops it at once, and frees it in the loop's next turn.
    pub fn close(self) {
        // SAFETY: it is closed once.
        unsafe { uv_close(self.raw.as_ptr(), on_closed::<L>) };
    }
}

fn started(status: c_int) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(failed("the event loop", status)) }
}

#[cold]
fn failed(what: &str, status: c_int) -> Error {
    Error::new(ErrorKind::StoreUnavailable, format!("libuv refused {what}: {status}"))
}

unsafe extern "C" fn on_poll<L: Listener>(raw: *mut c_void, _: c_int, _: c_int) {
    // SAFETY: as libuv calls it.
    unsafe { on_call::<L>(raw) };
}

unsafe extern "C" fn on_call<L: Listener>(raw: *mut c_void) {
    // SAFETY: an open handle has its listener, which is kept here for as long as the call takes.
    let listener = unsafe {
        let listener: *const L = uv_handle_get_data(raw).cast_const().cast();
        Rc::increment_strong_count(listener);
        Rc::from_raw(listener)
    };
    L::called(&listener);
}

unsafe extern "C" fn on_closed<L: Listener>(raw: *mut c_void) {
    // SAFETY: libuv calls it once and is done with the handle.
    unsafe {
        drop(Rc::from_raw(uv_handle_get_data(raw).cast_const().cast::<L>()));
        libc::free(raw);
    }
}
