//! Clocks that a limiter can be given: one moved by hand, and the caller's own.

use std::ffi::c_void;

use mirab::{Clock, Error, ErrorKind, ManualClock};

use crate::error::{mirab_error, mirab_result};
use crate::ffi::{self, Handle, natural, output, shared};
use crate::guard::{guard, guard_silently};

/// A clock that stands still until you move it: tests need no sleeping.
/// Threads: may be shared; every function on it may run at the same time as any other.
/// Lifetime: limiters made with it keep it alive, so it may be freed before or after them.
/// NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_manual_clock_free`.
/// Freeing: `mirab_manual_clock_free`, once.
pub struct mirab_manual_clock {
    pub(crate) inner: ManualClock,
}

impl Handle for mirab_manual_clock {}

/// Your own clock: writes microseconds since 1970 to `now_us` and returns `MIRAB_OK`, or
/// returns any other number when it can't tell the time; that decision then fails.
/// It is called once a decision, on the thread that asks, and must be safe on any thread.
/// It must return: no `longjmp`, no C++ exception. `userdata` is what you gave with it.
pub type mirab_clock_fn = Option<unsafe extern "C" fn(userdata: *mut c_void, now_us: *mut u64) -> u32>;

struct Callback {
    read: unsafe extern "C" fn(*mut c_void, *mut u64) -> u32,
    userdata: *mut c_void,
}

// SAFETY: the header asks for a function that any thread may call at any time.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    fn now_us(&self) -> Result<u64, Error> {
        let mut now_us = 0;
        // SAFETY: `now_us` is ours, and the header says how long the callback must live.
        match unsafe { (self.read)(self.userdata, &mut now_us) } {
            0 => Ok(now_us),
            code => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("the clock callback could not tell the time and returned {code}"),
            )),
        }
    }
}

/// The core's clock that reads the time from C.
pub(crate) fn from_callback(
    read: unsafe extern "C" fn(*mut c_void, *mut u64) -> u32,
    userdata: *mut c_void,
) -> Clock {
    let callback = Callback { read, userdata };
    Clock::host(move || callback.now_us())
}

/// Makes a clock that shows `start_us`, in microseconds since 1970, from 0 to 2^52.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_manual_clock_new(
    start_us: i64,
    error: *mut mirab_error,
    out: *mut *mut mirab_manual_clock,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let out = unsafe { output(out, "out")? };
        let inner = ManualClock::new(natural(start_us, "start_us")?)?;
        out.give(mirab_manual_clock { inner });
        Ok(())
    })
}

/// Moves the clock forward by `us` microseconds.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_manual_clock_advance_us(
    clock: *const mirab_manual_clock,
    us: i64,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let clock = unsafe { shared(clock, "clock")? };
        Ok(clock.inner.advance_us(natural(us, "us")?)?)
    })
}

/// Sets the clock to `us` microseconds since 1970, backwards too.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_manual_clock_set_us(
    clock: *const mirab_manual_clock,
    us: i64,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let clock = unsafe { shared(clock, "clock")? };
        Ok(clock.inner.set_us(natural(us, "us")?)?)
    })
}

/// Reads the clock, in microseconds since 1970.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_manual_clock_now_us(
    clock: *const mirab_manual_clock,
    error: *mut mirab_error,
    out: *mut u64,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (clock, out) = unsafe { (shared(clock, "clock")?, output(out, "out")?) };
        out.write(clock.inner.now_us());
        Ok(())
    })
}

/// Frees the clock. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_manual_clock_free(clock: *mut mirab_manual_clock) {
    // SAFETY: the header's conventions.
    guard_silently(|| unsafe { ffi::free(clock) });
}
