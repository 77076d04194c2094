//! Where each limit of a policy stands, beside the decision that tells of one.

use mirab::Standing;

use crate::decision::{micros, mirab_decision};
use crate::error::{mirab_error, mirab_result};
use crate::ffi::{natural, output, outputs, shared, slice};
use crate::guard::guard;
use crate::limiter::mirab_limiter;

/// The most limits that a limiter can have: an array of so many standings is never too small.
pub const MIRAB_MAX_LIMITS: usize = 16;

/// `next_after_us` when nothing is used.
pub const MIRAB_NO_NEXT: u64 = u64::MAX;

/// Where one of the limiter's limits stands: after the request when it was admitted, else before
/// it.
/// Threads: plain data; each call fills some of yours.
/// Lifetime: copy it, keep it; it refers to nothing.
/// NULL: `MIRAB_NULL_POINTER`, and then nothing was decided.
/// Freeing: nothing to free. Its size is fixed: later versions use the reserved room.
#[repr(C)]
pub struct mirab_standing {
    /// Its capacity, in units of cost.
    pub limit: u64,
    /// How many units are used.
    pub used: u64,
    /// How many units are left.
    pub remaining: u64,
    /// Microseconds until nothing is used any more.
    pub reset_after_us: u64,
    /// Microseconds until `remaining` grows by one; `MIRAB_NO_NEXT` when nothing is used.
    pub next_after_us: u64,
    #[doc(hidden)]
    pub _reserved: [u64; 3],
}

const _: () = assert!(size_of::<mirab_standing>() == 64);

impl From<Standing<'_>> for mirab_standing {
    fn from(standing: Standing<'_>) -> Self {
        Self {
            limit: standing.limit,
            used: standing.used,
            remaining: standing.remaining,
            reset_after_us: micros(standing.reset_after),
            next_after_us: standing.next_after.map_or(MIRAB_NO_NEXT, micros),
            _reserved: [0; 3],
        }
    }
}

/// As `mirab_limiter_acquire`, and writes where each limit stands to `out_standings`, in the
/// order of the limits. `room` is how many fit there: no fewer than the limiter has limits, so
/// `MIRAB_MAX_LIMITS` always will do; what is beyond the limits isn't touched. While the key is
/// blocked, each tells of the block: nothing is left, until it ends.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_acquire_with_standings(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    cost: i64,
    error: *mut mirab_error,
    out: *mut mirab_decision,
    out_standings: *mut mirab_standing,
    room: usize,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key, out) =
            unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?, output(out, "out")?) };
        // SAFETY: as above.
        let standings = unsafe { outputs(out_standings, room, limiter.names.len(), "out_standings")? };
        let (cost, time) = (natural(cost, "cost")?, limiter.inner.read_clock()?);
        let tell = |bare| {
            let told = limiter.inner.tell(&bare);
            standings.write(told.standings().cycle().map(mirab_standing::from));
            out.write(mirab_decision::new(told, limiter, key));
        };
        Ok(limiter.inner.acquire_bare_at(key, cost, time, tell)?)
    })
}

/// As `mirab_limiter_peek`, and writes where each limit stands, as
/// `mirab_limiter_acquire_with_standings` does.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_peek_with_standings(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    cost: i64,
    error: *mut mirab_error,
    out: *mut mirab_decision,
    out_standings: *mut mirab_standing,
    room: usize,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key, out) =
            unsafe { (shared(limiter, "limiter")?, slice(key, key_len, "key")?, output(out, "out")?) };
        // SAFETY: as above.
        let standings = unsafe { outputs(out_standings, room, limiter.names.len(), "out_standings")? };
        let (cost, time) = (natural(cost, "cost")?, limiter.inner.read_clock()?);
        let tell = |bare| {
            let told = limiter.inner.tell(&bare);
            standings.write(told.standings().cycle().map(mirab_standing::from));
            out.write(mirab_decision::new(told, limiter, key));
        };
        Ok(limiter.inner.peek_bare_at(key, cost, time, tell)?)
    })
}
