//! What a list of things that end says at one instant: a log's entries, its buckets, leases.

use super::Measure;

/// How much is in use, and when that changes; microseconds since 1970. Packed, so that a tag fits
/// beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(4))]
pub(crate) struct Tally {
    /// At most what a limit can be.
    pub used: u32,
    /// When `remaining` grows.
    pub next_end: u64,
    /// When the last of it ends.
    pub last_end: u64,
    /// When enough has ended for the cost that was asked; 0 when it fits now.
    pub needed_end: u64,
}

impl Tally {
    /// The tally of `live` ends and counts, in order, that sum up to `used`; no more of them are
    /// walked than the answer needs.
    pub fn of(
        live: impl Iterator<Item = (u64, u64)>,
        used: u64,
        last_end: u64,
        limit: u64,
        cost: u64,
    ) -> Self {
        let mut tally = Self { used: u32::try_from(used).unwrap_or(u32::MAX), last_end, ..Self::default() };
        if used == 0 {
            return Self::default();
        }
        let for_next = used.saturating_sub(limit) + 1;
        let for_cost = used.saturating_add(cost).saturating_sub(limit);
        let mut ended = 0;
        for (end, count) in live {
            ended += count;
            if tally.next_end == 0 && ended >= for_next {
                tally.next_end = end;
            }
            if for_cost > 0 && tally.needed_end == 0 && ended >= for_cost {
                tally.needed_end = end;
            }
            if ended >= for_next.max(for_cost) {
                break;
            }
        }
        tally
    }

    /// After taking a `cost` that fits and ends at `end`, after all others.
    pub fn charged(self, cost: u64, end: u64) -> Self {
        Self {
            used: u32::try_from(u64::from(self.used) + cost).unwrap_or(u32::MAX),
            next_end: if self.used == 0 { end } else { self.next_end },
            last_end: end.max(self.last_end),
            needed_end: 0,
        }
    }

    pub fn measure(&self, limit: u64, now: u64) -> Measure {
        let used = u64::from(self.used);
        Measure {
            used,
            remaining: limit.saturating_sub(used),
            reset_after: self.last_end.saturating_sub(now),
            next_after: self.next_end.saturating_sub(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_must_end() {
        let live = [(10, 2), (20, 3), (30, 1)];
        let of = |limit, cost| Tally::of(live.into_iter(), 6, 30, limit, cost);
        assert_eq!(of(6, 1), Tally { used: 6, next_end: 10, last_end: 30, needed_end: 10 });
        assert_eq!({ of(6, 3).needed_end }, 20);
        assert_eq!({ of(6, 6).needed_end }, 30);
        assert_eq!({ of(7, 1).needed_end }, 0);
        // A lowered limit: remaining stays 0 until less than it is in use.
        assert_eq!(of(3, 1), Tally { used: 6, next_end: 20, last_end: 30, needed_end: 20 });
    }
}
