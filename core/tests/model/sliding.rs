//! A sliding window by its definition: the previous count, weighted by what is left of it, and the
//! current one.

use std::any::Any;

use num_traits::ToPrimitive;

use super::{Model, Rational, Taken, rational};

#[derive(Clone)]
pub struct Sliding {
    limit: u64,
    period_us: u64,
    /// The window of the counts: current, previous.
    stored: (u64, u64, u64),
}

impl Sliding {
    pub fn new(limit: u64, period_us: u64) -> Self {
        Self { limit, period_us, stored: (0, 0, 0) }
    }

    /// The estimate at `at`, if nobody comes after now's window was read.
    fn estimate(&self, at: u64) -> Rational {
        let (window, current, previous) = self.stored;
        let (current, previous) = match at / self.period_us - window {
            0 => (current, previous),
            1 => (0, current),
            _ => (0, 0),
        };
        let left = rational(self.period_us - at % self.period_us) / rational(self.period_us);
        rational(previous) * left + rational(current)
    }

    fn fits(&self, at: u64, cost: u64) -> bool {
        self.estimate(at) + rational(cost) <= rational(self.limit)
    }

    /// The first instant from which the cost fits: the estimate never grows by itself.
    fn first_fit(&self, now: u64, cost: u64) -> u64 {
        let (mut refused, mut fits) = (now, now + 3 * self.period_us);
        while fits - refused > 1 {
            let middle = refused + (fits - refused) / 2;
            if self.fits(middle, cost) { fits = middle } else { refused = middle }
        }
        fits - now
    }
}

impl Model for Sliding {
    fn read(&mut self, now: u64) -> bool {
        let number = now / self.period_us;
        let (window, current, previous) = self.stored;
        self.stored = match number.checked_sub(window) {
            None => (number, current, previous),
            Some(0) => self.stored,
            Some(1) => (number, 0, current),
            Some(_) => (number, 0, 0),
        };
        // Nothing stored is nothing to mend.
        window > number
    }

    fn admits(&self, now: u64, cost: u64) -> bool {
        self.fits(now, cost)
    }

    fn charge(&mut self, _: u64, cost: u64, _: u64) {
        self.stored.1 += cost;
    }

    fn capacity(&self) -> u64 {
        self.limit
    }

    fn used(&self, now: u64) -> u64 {
        self.estimate(now).ceil().to_integer().to_u64().unwrap()
    }

    fn reset_after(&self, now: u64) -> u64 {
        let end = (self.stored.0 + 1) * self.period_us;
        match self.stored {
            (_, 0, 0) => 0,
            (_, 0, _) => end - now,
            _ => end + self.period_us - now,
        }
    }

    fn next_after(&self, now: u64) -> u64 {
        let used = self.used(now);
        if used == 0 { 0 } else { self.first_fit(now, self.limit.saturating_sub(used) + 1) }
    }

    fn retry_after(&self, now: u64, cost: u64) -> u64 {
        self.first_fit(now, cost)
    }

    fn force(&mut self, now: u64, cost: u64, turn: u64) {
        let mut read = self.clone();
        let mend = read.read(now);
        let room = cost.min(read.limit.saturating_sub(read.used(now)));
        read.charge(now, room, turn);
        if mend || room > 0 {
            *self = read;
        }
    }

    fn refund(&mut self, now: u64, units: u64, taken: &Taken) -> u64 {
        let mut read = self.clone();
        read.read(now);
        let charged = taken.at / self.period_us;
        let count = match read.stored.0.checked_sub(charged) {
            Some(0) => &mut read.stored.1,
            Some(1) => &mut read.stored.2,
            _ => return 0,
        };
        let given = units.min(*count);
        *count -= given;
        if given > 0 {
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
        self.limit = fresh.capacity();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
