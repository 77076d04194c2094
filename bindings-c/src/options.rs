//! How a limiter behaves beyond its limits and its store.

use std::ffi::{c_char, c_void};

use mirab::{Clock, LimiterBuilder, OnStoreFailure};

use crate::clock::{from_callback, mirab_clock_fn, mirab_manual_clock};
use crate::error::{Failure, mirab_error, mirab_result};
use crate::ffi::{self, Handle, exclusive, natural, output, shared, text};
use crate::guard::{guard, guard_silently};

/// What a limiter may be told beyond its limits and its store; unset means the default.
/// Threads: one at a time, while it is being filled.
/// Lifetime: a limiter copies what it needs; one set of options may make many limiters.
/// NULL: stands for all defaults where a limiter is made; else `MIRAB_NULL_POINTER`.
/// Freeing: `mirab_options_free`, once.
pub struct mirab_options {
    clock: Option<Clock>,
    on_store_failure: Option<OnStoreFailure>,
    instances: Option<u64>,
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
        if let Some(instances) = self.instances {
            builder = builder.instances(instances);
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
        out.give(mirab_options { clock: None, on_store_failure: None, instances: None });
        Ok(())
    })
}

/// Lets limiters go by this clock, on every store, instead of the store's own. On shared stores
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

/// Who decides when the store fails: doesn't answer by its deadline, is away, full, refuses us, or
/// holds a foreign value.
/// "local", unless told otherwise: the same limits, kept in this process until the store decides
/// again, on Redis each bucket from where this process last saw it. "open": everybody is admitted. "closed":
/// everybody is refused, until the store is next looked for. "raise": nobody; the call fails.
/// All but the last give `MIRAB_OK` and a decision that is `degraded`; what is given back or settled
/// meanwhile is 0. `mirab_limiter_reset`, `_block` and `_unblock` fail in any case. A store in memory
/// doesn't fail: it is full only where that was chosen.
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

/// How many processes share the store, 1 (the default) to 2^32-1: while it fails, each of them
/// admits that part of every limit by itself, rounded up. With 1 each admits all of it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_options_set_instances(
    options: *mut mirab_options,
    instances: i64,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let options = unsafe { exclusive(options, "options")? };
        options.instances = Some(natural(instances, "instances")?);
        Ok(())
    })
}

/// Frees the options. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_options_free(options: *mut mirab_options) {
    // SAFETY: the header's conventions.
    guard_silently(|| unsafe { ffi::free(options) });
}
