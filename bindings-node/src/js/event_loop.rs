//! Decisions of a store elsewhere, in Node's event loop: nobody waits for them. What one turn of the loop asks
//! goes out together, and what has arrived is told together. Each environment has one of these for each store; it
//! ends with the last limiter on the store, or with the environment.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;
use std::time::Duration;

use mirab::{BareDecision, Driver, Error, ErrorKind, Limiter, Result, Watch};
use napi_sys as sys;

use super::call::Call;
use super::context::{Context, State, check, fault};
use super::module::state_of;
use super::uv::{Handle, Listener};
use super::value::Value;

type Answer = Box<dyn FnOnce(&Context<'_>, BareDecision) -> Result<Value>>;

/// A promise that waits for its decision.
struct Asked {
    deferred: sys::napi_deferred,
    answer: Answer,
}

/// A store's requests in the event loop of one environment.
pub struct EventLoop {
    env: sys::napi_env,
    state: Rc<State>,
    scope: sys::napi_async_context,
    cleanup: Cell<sys::napi_async_cleanup_hook_handle>,
    uv: *mut c_void,
    driver: RefCell<Driver>,
    /// By numbers that are given once: an answer must not come to another who asked.
    asked: RefCell<HashMap<u64, Asked>>,
    last_id: Cell<u64>,
    /// Whether the process is kept alive, since somebody waits.
    keeps: Cell<bool>,
    /// Whether a turn is due before the loop waits.
    is_due: Cell<bool>,
    handles: RefCell<Option<Handles>>,
}

struct Handles {
    wake: Handle<EventLoop>,
    timer: Handle<EventLoop>,
    link: Option<(Watch, Handle<EventLoop>)>,
}

impl Call<'_> {
    /// Asks a store elsewhere: a promise of what `answer` makes of the decision, or that itself where it is
    /// known at once. None where the store is in this process, or the loop takes no more handles.
    pub fn in_loop(
        &self,
        limiter: &Limiter,
        ask: impl FnOnce(&mut Driver, u64) -> Result<Option<BareDecision>>,
        answer: impl FnOnce(&Context<'_>, BareDecision) -> Result<Value> + 'static,
    ) -> Result<Option<Value>> {
        let Some(event_loop) = EventLoop::of(self, limiter) else { return Ok(None) };
        let id = event_loop.last_id.get() + 1;
        event_loop.last_id.set(id);
        let decided = ask(&mut event_loop.driver.borrow_mut(), id)?;
        if let Some(bare) = decided {
            return answer(self, bare).map(Some);
        }
        let (mut deferred, mut promise) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: `env` is alive.
        let status = unsafe { sys::napi_create_promise(self.context.env, &mut deferred, &mut promise) };
        check(status, "making a promise")?;
        event_loop.asked.borrow_mut().insert(id, Asked { deferred, answer: Box::new(answer) });
        event_loop.be_due();
        Ok(Some(Value(promise)))
    }
}

impl Context<'_> {
    /// Ends the loops of stores that no limiter is on any more, once nobody waits.
    pub fn end_unused_loops(&self) {
        for event_loop in self.state.loops.borrow().iter() {
            if !event_loop.is_used() {
                event_loop.be_due();
            }
        }
    }
}

impl EventLoop {
    /// The one of a limiter's store.
    fn of(call: &Call<'_>, limiter: &Limiter) -> Option<Rc<Self>> {
        let found = call.state().loops.borrow().iter().find(|it| it.driver.borrow().serves(limiter)).cloned();
        found.or_else(|| {
            let driver = Driver::new(limiter).ok()??;
            let made = Self::new(call, driver).ok()?;
            call.state().loops.borrow_mut().push(Rc::clone(&made));
            Some(made)
        })
    }

    fn new(call: &Call<'_>, driver: Driver) -> Result<Rc<Self>> {
        let env = call.context.env;
        let state =
            state_of(env).ok_or_else(|| Error::new(ErrorKind::Closed, "this environment has ended"))?;
        let name = call.give("mirab")?;
        let (mut uv, mut scope) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: `env` is alive during the callback, and the out-pointers are ours.
        unsafe {
            check(sys::napi_get_uv_event_loop(env, &mut uv), "finding the event loop")?;
            check(sys::napi_async_init(env, ptr::null_mut(), name.0, &mut scope), "making a context")?;
        }
        let made = Rc::new(Self {
            env,
            state,
            scope,
            cleanup: Cell::new(ptr::null_mut()),
            uv: uv.cast(),
            driver: RefCell::new(driver),
            asked: RefCell::default(),
            last_id: Cell::new(0),
            keeps: Cell::new(false),
            is_due: Cell::new(false),
            handles: RefCell::default(),
        });
        made.begin().inspect_err(|_| made.end())?;
        Ok(made)
    }

    fn begin(self: &Rc<Self>) -> Result<()> {
        let timer = Handle::timer(self.uv, self)?;
        match Handle::poll(self.uv, self.driver.borrow().wake_fd(), self) {
            Ok(wake) => *self.handles.borrow_mut() = Some(Handles { wake, timer, link: None }),
            Err(error) => {
                timer.close();
                return Err(error);
            }
        }
        self.with_handles(|handles| handles.wake.watch(false))?;
        let mut cleanup = ptr::null_mut();
        // SAFETY: `env` is alive; the handles keep this until the hook is removed, with the last of them.
        let status = unsafe {
            let this = Rc::as_ptr(self).cast_mut().cast();
            sys::napi_add_async_cleanup_hook(self.env, Some(on_end), this, &mut cleanup)
        };
        self.cleanup.set(cleanup);
        check(status, "watching for the end of the environment")
    }

    /// Stops the handles, before the environment ends or the driver goes.
    fn end(&self) {
        let Some(handles) = self.handles.take() else { return };
        self.leave();
        let Handles { wake, timer, link } = handles;
        [wake, timer].into_iter().chain(link.map(|(_, link)| link)).for_each(Handle::close);
        // SAFETY: the environment is alive, and the context is in no use: no scope of it is open.
        unsafe { sys::napi_async_destroy(self.env, self.scope) };
    }

    fn is_used(&self) -> bool {
        let driver = self.driver.borrow();
        !self.asked.borrow().is_empty()
            || self.state.limiters.borrow().iter().any(|(_, it)| driver.serves(it))
    }

    /// Has a turn before the loop waits again.
    fn be_due(&self) {
        if self.is_due.replace(true) {
            return;
        }
        // It was stopped at most; a timer that is there can be set.
        let _ = self.with_handles(|handles| handles.timer.set(Some(Duration::ZERO)));
        self.keep_alive(true);
    }

    fn keep_alive(&self, keeps: bool) {
        if self.keeps.replace(keeps) != keeps {
            let _ = self.with_handles(|handles| {
                handles.wake.keep_alive(keeps);
                Ok(())
            });
        }
    }

    /// Where they are closed nothing is done.
    fn with_handles(&self, run: impl FnOnce(&mut Handles) -> Result<()>) -> Result<()> {
        self.handles.borrow_mut().as_mut().map_or(Ok(()), run)
    }

    /// Sends, receives and tells.
    fn turn(self: &Rc<Self>) {
        self.is_due.set(false);
        let watch = self.driver.borrow_mut().turn();
        let answered = self.driver.borrow_mut().take_answered();
        let watched = self.watch(watch);
        if !answered.is_empty() {
            self.tell(answered);
        }
        match watched {
            Ok(()) => self.rest(),
            Err(error) => self.fail(&error),
        }
    }

    fn watch(self: &Rc<Self>, watch: Watch) -> Result<()> {
        self.with_handles(|handles| {
            handles.timer.set(watch.within)?;
            let is_same = |old: &Watch| (old.link, old.connection) == (watch.link, watch.connection);
            if let Some((_, old)) = handles.link.take_if(|(old, _)| !is_same(old)) {
                old.close();
            }
            let Some(fd) = watch.link else { return Ok(()) };
            if handles.link.is_none() {
                let link = Handle::poll(self.uv, fd, self)?;
                handles.link = Some((Watch { writes: !watch.writes, ..watch }, link));
            }
            match &mut handles.link {
                Some((old, link)) if old.writes != watch.writes => {
                    link.watch(watch.writes)?;
                    *old = watch;
                }
                _ => {}
            }
            Ok(())
        })
    }

    /// Lets the process end where nobody waits; ends where no limiter is left.
    fn rest(&self) {
        let waits = !self.asked.borrow().is_empty() || self.is_due.get();
        self.keep_alive(waits);
        if !waits && !self.is_used() {
            self.end();
        }
    }

    /// Nobody would be told any more: all are, now, and whoever asks later has another loop.
    #[cold]
    fn fail(&self, error: &Error) {
        self.leave();
        let ids: Vec<u64> = self.asked.borrow().keys().copied().collect();
        self.tell(ids.into_iter().map(|id| (id, Err(error.clone()))));
        self.end();
    }

    fn leave(&self) {
        self.state.loops.borrow_mut().retain(|it| !ptr::eq(&raw const **it, self));
    }

    /// Settles promises, and lets those run who waited for them.
    fn tell(&self, answered: impl IntoIterator<Item = (u64, Result<BareDecision>)>) {
        let context = Context { env: self.env, state: &self.state };
        let (mut handles, mut scope) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the environment is alive, as its loop calls; both scopes are closed in their order.
        unsafe {
            if sys::napi_open_handle_scope(self.env, &mut handles) != sys::Status::napi_ok {
                return;
            }
            let opened = sys::napi_open_callback_scope(self.env, ptr::null_mut(), self.scope, &mut scope);
            for (id, decided) in answered {
                let asked = self.asked.borrow_mut().remove(&id);
                if let Some(asked) = asked {
                    context.settle(asked.deferred, decided.and_then(|bare| (asked.answer)(&context, bare)));
                }
            }
            if opened == sys::Status::napi_ok {
                sys::napi_close_callback_scope(self.env, scope);
            }
            sys::napi_close_handle_scope(self.env, handles);
        }
    }
}

impl Listener for EventLoop {
    fn called(this: &Rc<Self>) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| this.turn())) {
            this.fail(&fault(&*panic));
        }
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        if !self.cleanup.get().is_null() {
            // SAFETY: it is removed once; the environment waits for it where it ends.
            unsafe { sys::napi_remove_async_cleanup_hook(self.cleanup.get()) };
        }
    }
}

/// The environment ends: nobody who waits can be told any more.
unsafe extern "C" fn on_end(_: sys::napi_async_cleanup_hook_handle, this: *mut c_void) {
    // SAFETY: its handles keep it until they are closed, which removes this hook.
    let this = unsafe {
        Rc::increment_strong_count(this.cast_const().cast::<EventLoop>());
        Rc::from_raw(this.cast_const().cast::<EventLoop>())
    };
    this.end();
}
