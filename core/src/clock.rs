//! Clocks: the system's, a manual one for tests, and one that the host language reads.

mod ticks;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::{Error, Result};

/// The last instant of the domain: 2^52 microseconds after 1970, in the year 2112.
pub(crate) const MAX_TIME_US: u64 = 1 << 52;

/// The two readings of a clock, in microseconds since 1970.
///
/// *Steady* never steps and serves buckets; *wall* is the civil time that aligned windows need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    pub steady: u64,
    pub wall: u64,
}

impl Now {
    /// The same time, or the one at which the steady clock stood there.
    #[inline]
    pub fn at_least(self, steady: u64) -> Self {
        let missing = steady.saturating_sub(self.steady);
        Self { steady: self.steady + missing, wall: self.wall + missing }
    }
}

/// A clock for tests, moved by hand; clones share the time. Microseconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    now: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at `start_us` microseconds since 1970 (0 to 2^52).
    ///
    /// # Errors
    /// `invalid_argument` beyond 2^52.
    pub fn new(start_us: u64) -> Result<Self> {
        let clock = Self::default();
        clock.set_us(start_us)?;
        Ok(clock)
    }

    /// Moves the clock forward.
    ///
    /// # Errors
    /// `invalid_argument` when it would pass 2^52; the clock then stays where it is.
    pub fn advance_us(&self, us: u64) -> Result<()> {
        let moved = |now: u64| now.checked_add(us).filter(|&then| then <= MAX_TIME_US);
        match self.now.fetch_update(Ordering::AcqRel, Ordering::Acquire, moved) {
            Ok(_) => Ok(()),
            Err(now) => Err(Error::argument(format!(
                "advancing {now} by {us} microseconds: the time must stay within 0 to {MAX_TIME_US} (2^52)"
            ))),
        }
    }

    /// Sets the time, backwards too.
    ///
    /// # Errors
    /// `invalid_argument` beyond 2^52.
    pub fn set_us(&self, us: u64) -> Result<()> {
        self.now.store(check(us)?, Ordering::Release);
        Ok(())
    }

    /// The time it shows, in microseconds since 1970.
    pub fn now_us(&self) -> u64 {
        self.now.load(Ordering::Acquire)
    }
}

type HostClock = dyn Fn() -> Result<u64> + Send + Sync;

/// Where a limiter takes its time from.
#[non_exhaustive]
#[derive(Clone, Default)]
pub enum Clock {
    /// The store's own: the system's clock in memory, the server's on Redis.
    #[default]
    System,
    /// A manual clock, for tests.
    Manual(ManualClock),
    /// A clock of the host language, see [`Clock::host`].
    Host(Arc<HostClock>),
}

impl Clock {
    /// A clock that calls `read` once a decision for the microseconds since 1970.
    pub fn host(read: impl Fn() -> Result<u64> + Send + Sync + 'static) -> Self {
        Self::Host(Arc::new(read))
    }

    /// Reads it once.
    ///
    /// # Errors
    /// `invalid_argument` for a time outside 0 to 2^52, and what a host clock itself returns.
    pub fn read(&self) -> Result<Time> {
        match self {
            Self::System => Ok(Time::STORE),
            Self::Manual(clock) => Time::given_us(clock.now_us()),
            Self::Host(read) => Time::given_us(read()?),
        }
    }
}

impl From<ManualClock> for Clock {
    fn from(clock: ManualClock) -> Self {
        Self::Manual(clock)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("System"),
            Self::Manual(clock) => write!(f, "Manual({})", clock.now_us()),
            Self::Host(_) => f.write_str("Host"),
        }
    }
}

/// The time of one decision: the store's own, or an instant that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(Option<u64>);

impl Time {
    /// The store's own clock, read when the store decides.
    pub const STORE: Self = Self(None);

    /// A given instant, in microseconds since 1970.
    ///
    /// # Errors
    /// `invalid_argument` beyond 2^52.
    pub fn given_us(us: u64) -> Result<Self> {
        check(us).map(|us| Self(Some(us)))
    }

    /// The instant of the domain that is nearest.
    #[cfg(feature = "redis")]
    pub(crate) fn near_us(us: u64) -> Self {
        Self(Some(us.min(MAX_TIME_US)))
    }

    pub(crate) fn given(self) -> Option<u64> {
        self.0
    }

    /// The instant as a date, where one is given.
    pub fn given_date(self) -> Option<SystemTime> {
        self.0.map(|us| SystemTime::UNIX_EPOCH + Duration::from_micros(us))
    }
}

/// The given instant, or the system's clocks.
#[inline]
pub(crate) fn resolve(time: Time) -> Now {
    match time.given() {
        Some(us) => Now { steady: us, wall: us },
        None => ticks::read(),
    }
}

/// What this process adds to the boot clock for its steady time, in microseconds.
#[cfg(feature = "shm")]
pub(crate) fn offset_us() -> u64 {
    ticks::offset_us()
}

fn check(us: u64) -> Result<u64> {
    if us <= MAX_TIME_US {
        return Ok(us);
    }
    Err(Error::argument(format!(
        "a time of {us} microseconds since 1970: it must be within 0 to {MAX_TIME_US} (2^52)"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_by_hand_and_is_shared() {
        let clock = ManualClock::new(5).unwrap();
        let same = clock.clone();
        clock.advance_us(7).unwrap();
        assert_eq!(same.now_us(), 12);
        same.set_us(3).unwrap();
        assert_eq!(clock.now_us(), 3);
    }

    #[test]
    fn a_manual_clock_stays_in_the_domain() {
        assert!(ManualClock::new(MAX_TIME_US + 1).is_err());
        let clock = ManualClock::new(MAX_TIME_US).unwrap();
        assert!(clock.advance_us(1).is_err());
        assert!(clock.advance_us(u64::MAX).is_err());
        assert_eq!(clock.now_us(), MAX_TIME_US);
    }

    #[test]
    fn a_host_clock_is_checked() {
        assert_eq!(Clock::host(|| Ok(9)).read().unwrap(), Time::given_us(9).unwrap());
        assert!(Clock::host(|| Ok(u64::MAX)).read().is_err());
        assert!(Clock::host(|| Err(Error::argument("no time"))).read().is_err());
    }

    #[test]
    fn the_steady_clock_starts_near_the_wall_clock_and_never_falls() {
        let first = resolve(Time::STORE);
        assert!(first.steady.abs_diff(first.wall) < 10_000_000);
        let mut last = first.steady;
        for _ in 0..10_000 {
            let now = resolve(Time::STORE).steady;
            assert!(now >= last);
            last = now;
        }
    }
}
