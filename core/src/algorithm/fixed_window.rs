//! The fixed window: at most the limit in each window.

#[cfg(feature = "calendar")]
use super::calendar::Calendar;
use super::{Found, Measure};
use crate::clock::Now;

/// Where the windows of a fixed window begin.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Anchor {
    /// At whole multiples of the period since 1970.
    #[default]
    Clock,
    /// At the first admitted request.
    First,
}

/// Which stretches of time are windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Windows {
    /// Whole multiples of the period since 1970.
    Clock,
    /// A period from the first admitted request.
    First,
    #[cfg(feature = "calendar")]
    Calendar(Calendar),
}

impl From<Anchor> for Windows {
    fn from(anchor: Anchor) -> Self {
        match anchor {
            Anchor::Clock => Self::Clock,
            Anchor::First => Self::First,
        }
    }
}

/// A fixed window's numbers; a calendar's period is nominal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FixedWindow {
    pub limit: u64,
    pub period_us: u64,
    pub windows: Windows,
}

/// A window: where it ends, in microseconds since 1970, and what was admitted in it. Packed, so that a
/// tag fits beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub(crate) struct Window {
    pub end: u64,
    pub count: u32,
}

impl FixedWindow {
    #[inline]
    pub fn reads_wall(&self) -> bool {
        self.windows != Windows::First
    }

    /// The reading that this window goes by.
    #[inline]
    pub fn time(&self, now: Now) -> u64 {
        if self.reads_wall() { now.wall } else { now.steady }
    }

    /// A window that is over is empty; one that is later than now's is now's, with its count.
    #[inline]
    pub fn read(&self, mut window: Window, now: u64) -> (Window, Found) {
        let end = self.end(now);
        if window.end <= now {
            return (Window::default(), Found::Sound);
        }
        if window.end > end {
            window.end = end;
            return (window, Found::Future);
        }
        (window, Found::Sound)
    }

    #[inline]
    pub fn admits(&self, window: &Window, cost: u64) -> bool {
        u64::from(window.count).checked_add(cost).is_some_and(|sum| sum <= self.limit)
    }

    /// The window after taking `cost`, which fits.
    #[inline]
    pub fn charged(&self, window: Window, now: u64, cost: u64) -> Window {
        Window {
            end: if window.count > 0 { window.end } else { self.end(now) },
            count: u32::try_from(u64::from(window.count) + cost).unwrap_or(u32::MAX),
        }
    }

    pub fn measure(&self, window: &Window, now: u64) -> Measure {
        let used = u64::from(window.count);
        let left = if used > 0 { window.end - now } else { 0 };
        Measure { used, remaining: self.limit.saturating_sub(used), reset_after: left, next_after: left }
    }

    pub fn retry_after(&self, window: &Window, now: u64) -> u64 {
        window.end.saturating_sub(now)
    }

    /// Gives back up to `units` of what was admitted at `at`, while its window counts.
    pub fn refund(&self, window: &mut Window, now: u64, units: u64, at: u64) -> u64 {
        if window.end <= now || !(self.start(window.end)..window.end).contains(&at) {
            return 0;
        }
        let given = units.min(u64::from(window.count));
        window.count -= given as u32;
        given
    }

    /// The window that a request of now would open, or that now lies in.
    pub fn window(&self, now: u64) -> (u64, u64) {
        match self.windows {
            Windows::Clock => {
                let start = now - now % self.period_us;
                (start, start + self.period_us)
            }
            Windows::First => (now, now + self.period_us),
            #[cfg(feature = "calendar")]
            Windows::Calendar(calendar) => calendar.window(now),
        }
    }

    fn end(&self, now: u64) -> u64 {
        self.window(now).1
    }

    fn start(&self, end: u64) -> u64 {
        match self.windows {
            Windows::Clock | Windows::First => end.saturating_sub(self.period_us),
            #[cfg(feature = "calendar")]
            Windows::Calendar(calendar) => calendar.window(end - 1).0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ten_a_minute(anchor: Anchor) -> FixedWindow {
        FixedWindow { limit: 10, period_us: 60_000_000, windows: anchor.into() }
    }

    #[test]
    fn windows_are_aligned_to_the_clock_or_start_with_the_first_request() {
        let clock = ten_a_minute(Anchor::Clock).charged(Window::default(), 59_000_000, 1);
        assert_eq!(clock, Window { end: 60_000_000, count: 1 });
        let first = ten_a_minute(Anchor::First).charged(Window::default(), 59_000_000, 1);
        assert_eq!(first, Window { end: 119_000_000, count: 1 });
    }

    #[test]
    fn a_later_window_is_read_as_nows_with_its_count() {
        for anchor in [Anchor::Clock, Anchor::First] {
            let limit = ten_a_minute(anchor);
            let (window, found) = limit.read(limit.charged(Window::default(), 600_000_000, 4), 30_000_000);
            assert_eq!((window.count, found), (4, Found::Future));
            assert!(limit.measure(&window, 30_000_000).reset_after <= 60_000_000);
            assert_eq!(limit.read(window, 30_000_000).1, Found::Sound);
        }
    }

    #[test]
    fn a_window_ends_at_its_end() {
        let limit = ten_a_minute(Anchor::First);
        let stored = limit.charged(Window::default(), 0, 10);
        let (window, _) = limit.read(stored, 59_999_999);
        assert!(!limit.admits(&window, 1));
        assert_eq!(limit.retry_after(&window, 59_999_999), 1);
        let (window, _) = limit.read(stored, 60_000_000);
        assert!(limit.admits(&window, 10));
    }
}
