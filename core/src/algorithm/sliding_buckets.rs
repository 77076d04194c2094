//! The sliding log in buckets: k counters to a period, in place of an entry for each request.
//!
//! A sub-window that overlaps the period before now counts whole. So there are never more than the
//! limit in any window, and a refusal lasts at most a k-th of the period longer than it must.

use std::collections::VecDeque;

use super::{Found, Tally};

/// The numbers of a sliding log in buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingBuckets {
    pub limit: u64,
    pub period_us: u64,
    /// How many sub-windows a period has; it divides the period.
    pub buckets: u64,
}

/// The counts of the sub-windows, newest first, down to the oldest that may count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buckets {
    pub newest: u64,
    pub counts: VecDeque<u32>,
    pub last_end: u64,
}

impl Buckets {
    /// What all of it counts.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Counts of the one sub-window that is out at `last_end`.
    pub fn of(it: &SlidingBuckets, last_end: u64, count: u32) -> Self {
        let newest = (last_end.saturating_sub(it.period_us) / it.width()).saturating_sub(1);
        Self { newest, counts: [count].into(), last_end }
    }
}

impl SlidingBuckets {
    /// The sub-window of an instant.
    pub fn index(&self, now: u64) -> u64 {
        now / self.width()
    }

    /// When a sub-window is out.
    pub fn end(&self, index: u64) -> u64 {
        (index + 1) * self.width() + self.period_us
    }

    /// Sub-windows later than now's count into now's.
    pub fn read(&self, stored: &Buckets, now: u64, cost: u64) -> (Tally, Found) {
        let found = if stored.newest > self.index(now) { Found::Future } else { Found::Sound };
        let present = self.present(stored, now);
        let used = present.counts.iter().map(|&count| u64::from(count)).sum();
        let full = |(age, &count): (usize, &u32)| {
            (count > 0).then(|| (self.end(present.newest - age as u64), u64::from(count)))
        };
        let last_end = present.counts.iter().enumerate().find_map(full).map_or(0, |(end, _)| end);
        let live = present.counts.iter().enumerate().rev().filter_map(full);
        (Tally::of(live, used, last_end, self.limit, cost), found)
    }

    /// Ages the counts, corrects what is later than now, and adds `taken`.
    pub fn write(&self, stored: &mut Buckets, now: u64, taken: u64) {
        *stored = self.present(stored, now);
        if taken > 0 {
            let sum = u64::from(stored.counts[0]) + taken;
            stored.counts[0] = u32::try_from(sum).unwrap_or(u32::MAX);
        }
        let newest = stored.counts.iter().position(|&count| count > 0);
        stored.last_end = newest.map_or(0, |age| self.end(stored.newest - age as u64));
    }

    /// Gives back up to `units` of what was admitted at `at`, while its sub-window counts.
    pub fn refund(&self, stored: &mut Buckets, now: u64, units: u64, at: u64) -> u64 {
        let mut present = self.present(stored, now);
        let age = present.newest.checked_sub(self.index(at)).and_then(|age| usize::try_from(age).ok());
        let Some(count) = age.and_then(|age| present.counts.get_mut(age)) else { return 0 };
        let given = units.min(u64::from(*count));
        *count -= given as u32;
        if given > 0 {
            *stored = present;
        }
        given
    }

    /// The counts as of now's sub-window, which comes first; one more than the buckets can overlap.
    fn present(&self, stored: &Buckets, now: u64) -> Buckets {
        let index = self.index(now);
        let mut counts = stored.counts.clone();
        if stored.newest > index {
            let later = usize::try_from(stored.newest - index).unwrap_or(usize::MAX).min(counts.len());
            let sum: u32 = counts.drain(..later).fold(0, u32::saturating_add);
            match counts.front_mut() {
                Some(count) => *count = count.saturating_add(sum),
                None => counts.push_front(sum),
            }
        } else {
            for _ in 0..(index - stored.newest).min(self.buckets + 1) {
                counts.push_front(0);
            }
        }
        // Sub-windows of before 1970 don't exist, and those that are out don't count.
        counts.resize((self.buckets + 1).min(index + 1) as usize, 0);
        Buckets { newest: index, counts, last_end: stored.last_end }
    }

    fn width(&self) -> u64 {
        self.period_us / self.buckets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: SlidingBuckets = SlidingBuckets { limit: 10, period_us: 100, buckets: 10 };

    #[test]
    fn a_sub_window_that_overlaps_counts_whole() {
        let mut buckets = Buckets::default();
        LIMIT.write(&mut buckets, 1009, 10);
        let (tally, _) = LIMIT.read(&buckets, 1109, 1);
        assert_eq!((tally.used, tally.needed_end), (10, 1110));
        assert_eq!(LIMIT.read(&buckets, 1110, 1).0.used, 0);
    }

    #[test]
    fn later_sub_windows_count_into_nows() {
        let mut buckets = Buckets::default();
        LIMIT.write(&mut buckets, 500, 1);
        LIMIT.write(&mut buckets, 530, 2);
        LIMIT.write(&mut buckets, 555, 4);
        let (tally, found) = LIMIT.read(&buckets, 535, 1);
        assert_eq!((tally.used, tally.last_end, found), (7, 640, Found::Future));
        LIMIT.write(&mut buckets, 535, 0);
        assert_eq!(buckets.counts.iter().take(4).copied().collect::<Vec<_>>(), [6, 0, 0, 1]);
        let (tally, found) = LIMIT.read(&buckets, 5, 1);
        assert_eq!((tally.used, tally.last_end, found), (7, 110, Found::Future));
    }
}
