//! The sliding window: two counters, the previous one weighted by its overlap.
//!
//! With W the window, e the time since the current one began, and the previous window's requests
//! taken as spread evenly: a cost n is admitted when
//! `previous (W - e) + (current + n) W <= limit W`. All in integers.

use super::{Found, Measure};

/// A sliding window's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingWindow {
    pub limit: u64,
    pub period_us: u64,
}

/// The counts of the window that ends its second life at `end`: one period as the current one,
/// one more as the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pair {
    pub end: u64,
    pub current: u32,
    pub previous: u32,
}

/// A pair in 15 bytes, so that a tag fits beside it: instants of the domain have at most 53 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed)]
pub(crate) struct PackedPair {
    end: [u8; 7],
    current: u32,
    previous: u32,
}

impl PackedPair {
    pub fn unpacked(self) -> Pair {
        let [a, b, c, d, e, f, g] = self.end;
        let end = u64::from_le_bytes([a, b, c, d, e, f, g, 0]);
        Pair { end, current: self.current, previous: self.previous }
    }
}

impl Pair {
    pub fn packed(self) -> PackedPair {
        let [a, b, c, d, e, f, g, _] = self.end.to_le_bytes();
        PackedPair { end: [a, b, c, d, e, f, g], current: self.current, previous: self.previous }
    }

    /// The pair after taking `cost`, which fits.
    #[inline]
    pub fn charged(self, cost: u64) -> Self {
        Self { current: u32::try_from(u64::from(self.current) + cost).unwrap_or(u32::MAX), ..self }
    }
}

impl SlidingWindow {
    /// The pair of now's window, with nothing in it.
    pub fn empty(&self, now: u64) -> Pair {
        Pair { end: now - now % self.period_us + 2 * self.period_us, ..Pair::default() }
    }

    /// A later pair than now's is now's, with its counts.
    #[inline]
    pub fn read(&self, stored: Pair, now: u64) -> (Pair, Found) {
        let empty = self.empty(now);
        if stored.end > empty.end {
            (Pair { end: empty.end, ..stored }, Found::Future)
        } else if stored.end == empty.end {
            (stored, Found::Sound)
        } else if stored.end + self.period_us == empty.end {
            (Pair { previous: stored.current, ..empty }, Found::Sound)
        } else {
            (empty, Found::Sound)
        }
    }

    #[inline]
    pub fn admits(&self, pair: &Pair, now: u64, cost: u64) -> bool {
        let Some(room) =
            self.limit.checked_sub(u64::from(pair.current)).and_then(|room| room.checked_sub(cost))
        else {
            return false;
        };
        self.weighted(pair, now) <= u128::from(room) * u128::from(self.period_us)
    }

    /// Gives back up to `units` of what was admitted at `at`, while its window counts.
    pub fn refund(&self, pair: &mut Pair, now: u64, units: u64, at: u64) -> u64 {
        let charged = self.empty(at).end;
        let count = if charged == self.empty(now).end {
            &mut pair.current
        } else if charged + self.period_us == self.empty(now).end {
            &mut pair.previous
        } else {
            return 0;
        };
        let given = units.min(u64::from(*count));
        *count -= given as u32;
        given
    }

    pub fn measure(&self, pair: &Pair, now: u64) -> Measure {
        let left = self.left(now);
        let whole = u128::from(self.period_us);
        let used = self.weighted(pair, now).div_ceil(whole) as u64 + u64::from(pair.current);
        let remaining = self.limit.saturating_sub(used);
        Measure {
            used,
            remaining,
            reset_after: match (pair.current, pair.previous) {
                (0, 0) => 0,
                (0, _) => left,
                _ => left + self.period_us,
            },
            next_after: if used == 0 { 0 } else { self.retry_after(pair, now, remaining + 1) },
        }
    }

    /// The first instant at which the inequality holds for a cost that does not fit now.
    pub fn retry_after(&self, pair: &Pair, now: u64, cost: u64) -> u64 {
        let period = u128::from(self.period_us);
        let left = self.left(now);
        let (current, previous) = (u64::from(pair.current), u128::from(pair.previous));
        let room = self.limit.checked_sub(current).and_then(|room| room.checked_sub(cost));
        if let Some(room) = room.filter(|_| previous > 0) {
            // In this window: so much of it may be left that the previous count fits the room.
            let may_be_left = u128::from(room) * period / previous;
            if may_be_left > 0 {
                return left - may_be_left.min(u128::from(left)) as u64;
            }
        }
        // In the next one, where this window's count is the previous one.
        let room = u128::from(self.limit.saturating_sub(cost));
        let may_be_left =
            if current == 0 { period } else { (room * period / u128::from(current)).min(period) };
        left + (period - may_be_left) as u64
    }

    /// The previous count times what is left of the window.
    fn weighted(&self, pair: &Pair, now: u64) -> u128 {
        u128::from(pair.previous) * u128::from(self.left(now))
    }

    fn left(&self, now: u64) -> u64 {
        self.period_us - now % self.period_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: SlidingWindow = SlidingWindow { limit: 10, period_us: 60 };

    #[test]
    fn the_previous_window_fades() {
        let pair = LIMIT.empty(59).charged(10);
        let (pair, found) = LIMIT.read(pair, 60);
        assert_eq!((pair, found), (Pair { end: 180, current: 0, previous: 10 }, Found::Sound));
        assert!(!LIMIT.admits(&pair, 65, 1));
        assert_eq!(LIMIT.retry_after(&pair, 60, 1), 6);
        assert!(LIMIT.admits(&pair, 66, 1));
        assert_eq!(LIMIT.retry_after(&pair, 66, 10), 54);
        assert_eq!(LIMIT.read(pair, 180).0, LIMIT.empty(180));
    }

    #[test]
    fn a_later_pair_is_nows() {
        let later = LIMIT.empty(6_000).charged(4);
        let (pair, found) = LIMIT.read(later, 10);
        assert_eq!((pair.end, pair.current, found), (120, 4, Found::Future));
    }
}
