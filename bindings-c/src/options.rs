//! How a limiter behaves beyond its limits and its store.

use std::ffi::{c_char, c_void};

use mirab::{Clock, LimiterBuilder, OnStoreFailure};

use crate::clock::{from_callback, mirab_clock_fn, mirab_manual_clock};
use crate::error::{Failure, mirab_error, mirab_result};
use crate::ffi::{self, Handle, exclusive, output, shared, text};
use crate::guard::{guard, guard_silently};

/// What a limiter may be told beyond its limits and its store; unset means the default.
/// Threads: one at a time, while it is being filled.
/// Lifetime: a limiter copies what it needs; one set of options may make many limiters.
/// NULL: stands for all defaults where a limiter is made; else `MIRAB_NULL_POINTER`.
/// Freeing: `mirab_options_free`, once.
pub struct mirab_options {
    clock: Option<Clock>,
    on_store_failure: Option<OnStoreFailure>,
}

impl Handle for mirab_options {}

impl mirab_options {
    /// Hands to the core what was set, and leaves the rest to its defaults.
    pub(crate) fn apply(&self, mut builder: LimiterBuilder) -> LimiterBuilder {
        if let Some(clock) = &self.clock {
            builder = builder.clock(clock.clone());
        }
        if let Some(choice) = self.on_store_failure {
            builder = builder.on_store_failure(choice);
        }
        builder
    }
}

/// Makes options with nothing set.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_options_new(
    error: *mut mirab_error,
    out: *mut *mut mirab_options,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let out = unsafe { output(out, "out")? };
        out.give(mirab_options { clock: None, on_store_failure: None });
        Ok(())
    })
}

/// Lets limiters go by this clock, on every store, instead of the store's own. On Redis
/// they keep their state apart from that of real time.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_options_set_manual_clock(
    options: *mut mirab_options,
    clock: *const mirab_manual_clock,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (options, clock) = unsafe { (exclusive(options, "options")?, shared(clock, "clock")?) };
        options.clock = Some(clock.inner.clone().into());
        Ok(())
    })
}

/// Lets limiters go by a clock of your own. `read` and `userdata` must live until these
/// options and the last limiter made with them are freed; `userdata` may be NULL.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_options_set_clock_callback(
    options: *mut mirab_options,
    read: mirab_clock_fn,
    userdata: *mut c_void,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let options = unsafe { exclusive(options, "options")? };
        let read = read.ok_or_else(|| Failure::new(mirab_result::MIRAB_NULL_POINTER, "read is NULL"))?;
        options.clock = Some(from_callback(read, userdata));
        Ok(())
    })
}

/// What to answer when the store doesn't decide. "raise": the call fails with the store's
/// error, which is what this version does when nothing is set.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_options_set_on_store_failure(
    options: *mut mirab_options,
    choice: *const c_char,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (options, choice) = unsafe { (exclusive(options, "options")?, text(choice, "choice")?) };
        options.on_store_failure = Some(choice.parse()?);
        Ok(())
    })
}

/// Frees the options. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_options_free(options: *mut mirab_options) {
    // SAFETY: the header's conventions.
    guard_silently(|| unsafe { ffi::free(options) });
}
