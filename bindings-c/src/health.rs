//! How a limiter's store is.

use std::ffi::c_char;

use mirab::Health;

use crate::error::{mirab_error, mirab_result};
use crate::ffi::{fixed, output, shared};
use crate::guard::guard;
use crate::limiter::mirab_limiter;

/// `clock_ahead_us` when nothing is known of the store's clock.
pub const MIRAB_NO_CLOCK: i64 = i64::MIN;

/// Room for the store's address in `mirab_health`, its NUL byte included.
pub const MIRAB_HEALTH_STORE_SIZE: usize = 256;

/// Room for a word in `mirab_health`, its NUL byte included.
pub const MIRAB_HEALTH_WORD_SIZE: usize = 32;

/// How a store is: what an operator asks first. Texts are UTF-8, ended by NUL, cut when too long,
/// and empty when nothing is known.
/// Threads: plain data; each call fills one of yours.
/// Lifetime: copy it, keep it; it refers to nothing.
/// NULL: `MIRAB_NULL_POINTER`, and then nothing was asked.
/// Freeing: nothing to free. Its size is fixed: later versions use the reserved room.
#[repr(C)]
pub struct mirab_health {
    /// Whether the store answered just now, and is asked.
    pub ok: bool,
    /// Whether the server has a limit of memory and would then drop the keys of limiters, which
    /// gives their owners all their room back. Only known where `maxmemory_policy` isn't empty.
    pub may_drop_keys: bool,
    #[doc(hidden)]
    pub _reserved_flags: [u8; 2],
    /// The layout of the state that this library writes.
    pub layout: u32,
    /// How often it went from "closed" to "open".
    pub opened: u64,
    /// How far the store's clock is ahead of this process's, to half a round trip; negative when it
    /// is behind; `MIRAB_NO_CLOCK` when it has none of its own, or didn't tell.
    pub clock_ahead_us: i64,
    /// "closed" while the store is asked, "open" while it isn't, after failures, "trial" while one
    /// request tries it again.
    pub circuit: [c_char; MIRAB_HEALTH_WORD_SIZE],
    /// The server's version, such as "7.0.15"; empty where there is no server.
    pub server_version: [c_char; MIRAB_HEALTH_WORD_SIZE],
    /// What the server does when its memory is full.
    pub maxmemory_policy: [c_char; MIRAB_HEALTH_WORD_SIZE],
    /// The store, without user, password and parameters.
    pub store: [c_char; MIRAB_HEALTH_STORE_SIZE],
    /// What failed last; `MIRAB_OK` and no message when nothing has.
    pub last_error: mirab_error,
    /// How long ago that was; 0 when nothing has failed.
    pub last_error_age_us: u64,
    #[doc(hidden)]
    pub _reserved: [u64; 16],
}

const _: () = assert!(size_of::<mirab_health>() == 1024);

impl From<Health> for mirab_health {
    fn from(health: Health) -> Self {
        let last_error = health.last_error.map(|(kind, text)| mirab_error::of(kind, &text));
        Self {
            ok: health.ok,
            may_drop_keys: health.may_drop_keys.unwrap_or_default(),
            _reserved_flags: [0; 2],
            layout: health.layout,
            opened: health.opened,
            clock_ahead_us: health.clock_ahead_us.unwrap_or(MIRAB_NO_CLOCK),
            circuit: fixed(health.circuit),
            server_version: fixed(&health.server_version.unwrap_or_default()),
            maxmemory_policy: fixed(&health.maxmemory_policy.unwrap_or_default()),
            store: fixed(&health.store),
            last_error: last_error.unwrap_or_default(),
            last_error_age_us: health.last_error_age.map_or(0, |age| age.as_micros() as u64),
            _reserved: [0; 16],
        }
    }
}

/// Tells how the limiter's store is, asked now: where that is a server, in a few round trips, each
/// within the deadline of a decision. A store that is away is what it tells, and no failure.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_health(
    limiter: *const mirab_limiter,
    error: *mut mirab_error,
    out: *mut mirab_health,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, out) = unsafe { (shared(limiter, "limiter")?, output(out, "out")?) };
        out.write(limiter.inner.health()?.into());
        Ok(())
    })
}
