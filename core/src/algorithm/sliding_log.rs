//! The sliding log: exact, never more than the limit in any window.
//!
//! One entry for each admitted request, whatever its cost. An entry counts while it is younger
//! than the period: one that is exactly a period old is out.

use std::collections::VecDeque;

use super::list::List;
use super::{Found, Tally};

/// A sliding log's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlidingLog {
    pub limit: u64,
    pub period_us: u64,
}

/// The instants and costs that were admitted, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log<L = VecDeque<Entry>> {
    pub entries: L,
    /// What all of it counts.
    pub total: u64,
    pub last_end: u64,
}

/// An instant, in microseconds since 1970, and the cost that was admitted then.
pub(crate) type Entry = (u64, u32);

impl Log {
    /// A log of one entry.
    pub fn of(log: &SlidingLog, at: u64, count: u32) -> Self {
        Self { entries: [(at, count)].into(), total: count.into(), last_end: log.end(at) }
    }
}

impl SlidingLog {
    /// When an entry of that instant is out.
    pub fn end(&self, at: u64) -> u64 {
        at + self.period_us
    }

    /// Entries later than now count as made now.
    pub fn read(&self, log: &Log<impl List<Entry>>, now: u64, cost: u64) -> (Tally, Found) {
        let (mut aged, mut over) = (0, 0);
        for (at, count) in log.entries.since(0) {
            if self.end(at) > now {
                break;
            }
            aged += 1;
            over += u64::from(count);
        }
        let live = log.entries.since(aged).map(|(at, count)| (self.end(at.min(now)), u64::from(count)));
        let newest = log.entries.last().map_or(0, |(at, _)| at);
        let used = log.total.saturating_sub(over);
        let tally = Tally::of(live, used, self.end(newest.min(now)), self.limit, cost);
        let found = match (newest > now, aged > 0) {
            (true, _) => Found::Future,
            (false, true) => Found::Aged,
            (false, false) => Found::Sound,
        };
        (tally, found)
    }

    /// Drops what is out, corrects what is later than now, and adds `taken`.
    pub fn write(&self, log: &mut Log<impl List<Entry>>, now: u64, taken: u64) {
        let aged = self.aged(log, now);
        let over: u64 = log.entries.since(0).take(aged).map(|(_, count)| u64::from(count)).sum();
        log.entries.drop_first(aged);
        log.total = log.total.saturating_sub(over);
        for place in (0..log.entries.len()).rev() {
            match log.entries.get(place) {
                Some((at, count)) if at > now => log.entries.put(place, (now, count)),
                _ => break,
            }
        }
        if taken > 0 {
            log.entries.push((now, u32::try_from(taken).unwrap_or(u32::MAX)));
            log.total += taken;
        }
        log.last_end = log.entries.last().map_or(0, |(at, _)| self.end(at));
    }

    /// Gives back up to `units` of the entry of `taken` units at `at`, while it counts.
    pub fn refund(
        &self,
        log: &mut Log<impl List<Entry>>,
        now: u64,
        units: u64,
        (at, taken): (u64, u64),
    ) -> u64 {
        if self.end(at) <= now {
            return 0;
        }
        let own = |&place: &usize| {
            log.entries.get(place).is_some_and(|(instant, count)| instant == at && u64::from(count) == taken)
        };
        let Some(place) = (0..log.entries.len()).rev().find(own) else { return 0 };
        let given = units.min(taken);
        if given == taken {
            log.entries.remove(place);
        } else {
            log.entries.put(place, (at, (taken - given) as u32));
        }
        log.total = log.total.saturating_sub(given);
        // A log of which nothing counts is no log: a step back finds none of it again.
        if self.aged(log, now) == log.entries.len() {
            log.entries.drop_first(log.entries.len());
            (log.total, log.last_end) = (0, 0);
        }
        given
    }

    /// How many entries at the head are out.
    fn aged(&self, log: &Log<impl List<Entry>>, now: u64) -> usize {
        log.entries.count_while(|(at, _)| self.end(at) <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: SlidingLog = SlidingLog { limit: 1000, period_us: 10 };

    #[test]
    fn a_request_is_one_entry_whatever_its_cost() {
        let mut log: Log = Log::default();
        LIMIT.write(&mut log, 3, 1000);
        assert_eq!(log.entries.len(), 1);
        let (tally, found) = LIMIT.read(&log, 12, 1);
        assert_eq!((tally.used, tally.needed_end, found), (1000, 13, Found::Sound));
        assert_eq!(LIMIT.read(&log, 13, 1), (Tally::default(), Found::Aged));
        LIMIT.write(&mut log, 13, 0);
        assert_eq!(log, Log::default());
    }

    #[test]
    fn entries_of_the_future_are_made_now() {
        let mut log: Log = Log::default();
        LIMIT.write(&mut log, 55, 1);
        LIMIT.write(&mut log, 60, 1);
        let (tally, found) = LIMIT.read(&log, 5, 1000);
        assert_eq!((tally.used, tally.needed_end, tally.last_end, found), (2, 15, 15, Found::Future));
        LIMIT.write(&mut log, 5, 0);
        assert_eq!(log.entries, [(5, 1), (5, 1)]);
    }
}
