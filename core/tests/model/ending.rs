//! Things that end, by their definition: a log's entries, its sub-windows, leases. Each has an end,
//! and the sum of those that have not ended is in use.

use std::any::Any;

use super::{Model, Taken};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Log,
    /// Counted by sub-windows, so many to a period.
    Buckets(u64),
    Leases,
}

#[derive(Clone)]
pub struct Ending {
    kind: Kind,
    limit: u64,
    period_us: u64,
    /// When each was made (a log: the instant; buckets: the sub-window's start; leases: the end),
    /// its units, its turn; in order.
    made: Vec<(u64, u64, u64)>,
}

impl Ending {
    pub fn new(kind: Kind, limit: u64, period_us: u64) -> Self {
        Self { kind, limit, period_us, made: Vec::new() }
    }

    fn end(&self, made: u64) -> u64 {
        match self.kind {
            Kind::Log => made + self.period_us,
            Kind::Buckets(k) => made + self.period_us / k + self.period_us,
            Kind::Leases => made,
        }
    }

    /// What one that is made now would be noted as.
    fn latest(&self, now: u64) -> u64 {
        match self.kind {
            Kind::Log => now,
            Kind::Buckets(k) => now - now % (self.period_us / k),
            Kind::Leases => now + self.period_us,
        }
    }

    fn live(&self, at: u64) -> u64 {
        self.made.iter().filter(|&&(made, ..)| self.end(made) > at).map(|&(_, units, _)| units).sum()
    }

    /// The first end after which `enough` holds for what is in use.
    fn first(&self, now: u64, enough: impl Fn(u64) -> bool) -> u64 {
        let ends = self.made.iter().map(|&(made, ..)| self.end(made)).filter(|&end| end > now);
        ends.min_by_key(|&end| (!enough(self.live(end)), end)).map_or(0, |end| end - now)
    }
}

impl Model for Ending {
    fn read(&mut self, now: u64) -> bool {
        let latest = self.latest(now);
        let future = self.made.iter().any(|&(made, ..)| made > latest);
        for entry in &mut self.made {
            entry.0 = entry.0.min(latest);
        }
        let before = self.made.len();
        let keep: Vec<_> = self.made.iter().copied().filter(|&(made, ..)| self.end(made) > now).collect();
        self.made = keep;
        // Buckets are one text, which is not written for what has aged.
        future || (self.made.len() < before && !matches!(self.kind, Kind::Buckets(_)))
    }

    fn admits(&self, now: u64, cost: u64) -> bool {
        self.live(now) + cost <= self.limit
    }

    fn charge(&mut self, now: u64, cost: u64, turn: u64) {
        self.made.push((self.latest(now), cost, turn));
    }

    fn capacity(&self) -> u64 {
        self.limit
    }

    fn used(&self, now: u64) -> u64 {
        self.live(now)
    }

    fn reset_after(&self, now: u64) -> u64 {
        self.made.iter().map(|&(made, ..)| self.end(made)).max().map_or(0, |end| end - now)
    }

    fn next_after(&self, now: u64) -> u64 {
        let remaining = self.limit.saturating_sub(self.live(now));
        self.first(now, |used| self.limit.saturating_sub(used) > remaining)
    }

    fn retry_after(&self, now: u64, cost: u64) -> u64 {
        self.first(now, |used| used + cost <= self.limit)
    }

    fn release(&mut self, now: u64, turn: u64) -> bool {
        if self.kind != Kind::Leases {
            return false;
        }
        let place = self.made.iter().position(|entry| entry.2 == turn);
        place.is_some_and(|place| self.made.remove(place).0 > now)
    }

    fn is_leases(&self) -> bool {
        self.kind == Kind::Leases
    }

    fn force(&mut self, now: u64, cost: u64, turn: u64) {
        let mut read = self.clone();
        let mend = read.read(now);
        let room = cost.min(read.limit.saturating_sub(read.live(now)));
        if room > 0 {
            read.charge(now, room, turn);
        }
        if mend || room > 0 {
            *self = read;
        }
    }

    fn refund(&mut self, now: u64, units: u64, taken: &Taken) -> u64 {
        let mut read = self.clone();
        if let Kind::Buckets(_) = self.kind {
            // A sub-window that is later than now's counts as now's.
            read.read(now);
        }
        let made = match self.kind {
            Kind::Leases => return if self.release(now, taken.turn) { units } else { 0 },
            Kind::Log => taken.at,
            Kind::Buckets(_) => self.latest(taken.at),
        };
        if self.end(made) <= now {
            return 0;
        }
        let own =
            |entry: &(u64, u64, u64)| entry.0 == made && (self.kind != Kind::Log || entry.1 == taken.cost);
        let (mut given, mut left) = (0, units);
        for entry in read.made.iter_mut().rev().filter(|entry| own(entry)) {
            let back = left.min(entry.1);
            entry.1 -= back;
            given += back;
            left -= back;
            if self.kind == Kind::Log {
                break;
            }
        }
        read.made.retain(|entry| entry.1 > 0);
        if given > 0 {
            // What is empty is forgotten.
            if read.live(now) == 0 {
                read.made.clear();
            }
            *self = read;
        }
        given
    }

    fn span(&self) -> u64 {
        self.period_us
    }

    fn boxed(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn renumber(&mut self, fresh: &dyn Model) {
        let fresh = fresh.as_any().downcast_ref::<Self>().unwrap();
        self.limit = fresh.limit;
        self.period_us = fresh.period_us;
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
