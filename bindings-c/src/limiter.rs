//! The limiter: limits on a store.

use std::ffi::{CString, c_char};

use mirab::{Error, ErrorKind, Limiter, Policy, Store};

use crate::decision::{MIRAB_LIMIT_BLOCK, mirab_decision};
use crate::error::{Failure, mirab_error, mirab_result};
use crate::ffi::{self, Handle, invalid, natural, optional, output, shared, slice, text};
use crate::guard::{guard, guard_silently};
use crate::limit::mirab_limit;
use crate::options::mirab_options;
use crate::origin::Origin;

/// Limits on a store: it decides who passes.
/// Threads: may be shared; every function on it may run at the same time as any other.
/// Lifetime: it stands alone: options, limits and clocks that it was made with may go first.
/// NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_limiter_free`.
/// Freeing: `mirab_limiter_free`, once, when no thread is inside a call on it.
pub struct mirab_limiter {
    pub(crate) inner: Limiter,
    /// What `mirab_limiter_limit_name` lends out, in the order of the policy.
    pub(crate) names: Vec<CString>,
    pub(crate) origin: Origin,
}

impl Handle for mirab_limiter {}

impl mirab_limiter {
    fn build(policy: Policy, store: &str, options: Option<&mirab_options>) -> Result<Self, Failure> {
        let names = policy.limits().iter().map(|limit| c_name(limit.name()));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let origin = Origin::of(names.iter().map(CString::as_c_str));
        let mut builder = Limiter::builder(policy).store(Store::open(store)?);
        if let Some(options) = options {
            builder = options.apply(builder);
        }
        Ok(Self { inner: builder.build()?, names, origin })
    }
}

fn c_name(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| {
        let message = format!("the limit's name {name:?} holds a NUL byte");
        Error::new(ErrorKind::Internal, message)
    })
}

/// Makes a limiter from limits as text, such as "5/minute" or "100/second burst 300".
/// `store` is "memory:" (this limiter's own), "memory:NAME" (shared in the process), "shm:NAME"
/// (shared by all processes of this host and user that name it, without a server: what several
/// workers of one host should use) or "redis://HOST:PORT" (shared by all who name it;
/// "rediss://HOST:PORT" over TLS, "redis+unix:///PATH" through a socket). `options` may be NULL.
/// "memory:NAME?max_keys=100000" keeps so many keys at most, else a million: what says nothing any
/// more goes first, then what is full again soonest, unless "&when_full=refuse" makes a new key
/// `MIRAB_STORE_FULL`.
/// "shm:NAME" is a file of fixed size in /dev/shm ("shm:///PATH": that file), made by the first who
/// comes: "?max_keys=" (100000) and "log_entries=" (1024: the largest "sliding_log", twice the
/// largest "concurrency"; a larger one is `MIRAB_UNSUPPORTED`) say how large, "mode=" and "group=" for
/// whom. A file that can't be used is `MIRAB_STORE_UNAVAILABLE`, `_DENIED`, `_CORRUPT` or `_MISMATCH`
/// here. A process that is stopped while it decides is waited for "timeout_ms=" (1000), and then the
/// store has failed.
/// No socket is opened and no thread started before the first decision.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_new(
    limits: *const c_char,
    store: *const c_char,
    options: *const mirab_options,
    error: *mut mirab_error,
    out: *mut *mut mirab_limiter,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limits, store, options, out) = unsafe {
            (text(limits, "limits")?, text(store, "store")?, optional(options), output(out, "out")?)
        };
        out.give(mirab_limiter::build(Policy::parse(limits)?, store, options)?);
        Ok(())
    })
}

/// Makes a limiter from `count` limits that were made one by one; else as
/// `mirab_limiter_new`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_from_limits(
    limits: *const *const mirab_limit,
    count: usize,
    store: *const c_char,
    options: *const mirab_options,
    error: *mut mirab_error,
    out: *mut *mut mirab_limiter,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limits, store, options, out) = unsafe {
            let limits = slice(limits, count, "limits")?;
            (limits, text(store, "store")?, optional(options), output(out, "out")?)
        };
        let limits = limits.iter().map(|&limit| {
            // SAFETY: as above, for each of them.
            Ok(unsafe { shared(limit, "one of limits")? }.inner.clone())
        });
        let policy = Policy::new(limits.collect::<Result<_, Failure>>()?)?;
        out.give(mirab_limiter::build(policy, store, options)?);
        Ok(())
    })
}

/// Asks for `cost` units for a key, and takes them when they are there. A refusal takes
/// nothing. `cost` is 0 (always passes and takes nothing) to 2^53; `key` is 1 to 65536
/// bytes. Whether the request is admitted is in `out->allowed`, never in the result code.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_acquire(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    cost: i64,
    error: *mut mirab_error,
    out: *mut mirab_decision,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key, out) =
            unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?, output(out, "out")?) };
        let (cost, time) = (natural(cost, "cost")?, limiter.inner.read_clock()?);
        let tell = |bare| out.write(mirab_decision::new(limiter.inner.tell(&bare), limiter, key));
        Ok(limiter.inner.acquire_bare_at(key, cost, time, tell)?)
    })
}

/// As `mirab_limiter_acquire`, but only yes or no: the fastest way to ask.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_allow(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    cost: i64,
    error: *mut mirab_error,
    out: *mut bool,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key, out) =
            unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?, output(out, "out")?) };
        out.write(limiter.inner.allow(key, natural(cost, "cost")?)?);
        Ok(())
    })
}

/// Says what `mirab_limiter_acquire` would answer now, and takes nothing.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_peek(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    cost: i64,
    error: *mut mirab_error,
    out: *mut mirab_decision,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key, out) =
            unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?, output(out, "out")?) };
        let (cost, time) = (natural(cost, "cost")?, limiter.inner.read_clock()?);
        let tell = |bare| out.write(mirab_decision::new(limiter.inner.tell(&bare), limiter, key));
        Ok(limiter.inner.peek_bare_at(key, cost, time, tell)?)
    })
}

/// Forgets what a key has used, and lifts its block. A key that was never seen is fine.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_reset(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key) = unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?) };
        Ok(limiter.inner.reset(key)?)
    })
}

/// Tells how many limits the limiter has, at most `MIRAB_MAX_LIMITS`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_limit_count(
    limiter: *const mirab_limiter,
    error: *mut mirab_error,
    out: *mut u32,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, out) = unsafe { (shared(limiter, "limiter")?, output(out, "out")?) };
        // A policy has at most 16 limits.
        out.write(limiter.names.len() as u32);
        Ok(())
    })
}

/// Lends the name of one of the limiter's limits: the name it was given, else its text in
/// canonical form; "block" for `MIRAB_LIMIT_BLOCK`. `index` is that of a decision or of a
/// standing. Don't free it; it lives as long as the limiter.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_limit_name(
    limiter: *const mirab_limiter,
    index: u32,
    error: *mut mirab_error,
    out: *mut *const c_char,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, out) = unsafe { (shared(limiter, "limiter")?, output(out, "out")?) };
        if index == MIRAB_LIMIT_BLOCK {
            out.write(c"block".as_ptr());
            return Ok(());
        }
        let name = limiter.names.get(index as usize).ok_or_else(|| {
            let count = limiter.names.len();
            invalid(format!("index must be below {count}, the number of limits, not {index}"))
        })?;
        out.write(name.as_ptr());
        Ok(())
    })
}

/// Ends the limiter's work: every later question to it gives `MIRAB_CLOSED`, and so does
/// `mirab_limiter_wait` to threads that are in it now. Closing twice is fine. The store lives on
/// for others, and the limiter still has to be freed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_close(
    limiter: *const mirab_limiter,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        unsafe { shared(limiter, "limiter")? }.inner.close();
        Ok(())
    })
}

/// Frees the limiter, closing nothing that others share. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_free(limiter: *mut mirab_limiter) {
    // SAFETY: the header's conventions.
    guard_silently(|| unsafe { ffi::free(limiter) });
}
