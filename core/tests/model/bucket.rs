//! A token bucket by its definition: tokens flow in at a rate, up to the capacity.

use std::any::Any;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use super::{Model, Rational, Taken, ceil, rational};

#[derive(Clone)]
pub struct Bucket {
    capacity: u64,
    /// Tokens a microsecond.
    rate: Rational,
    /// When the bucket will be full: whole microseconds, and a count of the unit that divides them,
    /// the rate's numerator. Under another rate the count is read in the new unit, or as the next
    /// whole microsecond where it has no such many.
    full_at: (Rational, BigInt),
    /// Whether requests queue for their turns.
    leaky: bool,
}

impl Bucket {
    pub fn new(count: u64, period_us: u64, capacity: u64) -> Self {
        let rate = Rational::new(BigInt::from(count), BigInt::from(period_us));
        Self { capacity, rate, full_at: (Rational::zero(), BigInt::zero()), leaky: false }
    }

    /// A queue: those who wait and the one being served.
    pub fn leaky(count: u64, period_us: u64, queue: u64) -> Self {
        Self { leaky: true, ..Self::new(count, period_us, queue + 1) }
    }

    fn full(&self) -> Rational {
        let (whole, count) = &self.full_at;
        let unit = self.rate.numer();
        if count >= unit { whole + rational(1) } else { whole + Rational::new(count.clone(), unit.clone()) }
    }

    /// As it is stored, the next whole microsecond where the rate's unit has no such many.
    fn stored_at(&self) -> (Rational, BigInt) {
        let (whole, count) = &self.full_at;
        if count >= self.rate.numer() {
            (whole + rational(1), BigInt::zero())
        } else {
            (whole.clone(), count.clone())
        }
    }

    fn set_full_at(&mut self, full_at: &Rational) {
        let whole = full_at.floor();
        let count = (full_at - &whole) * Rational::from_integer(self.rate.numer().clone());
        self.full_at = (whole, count.to_integer());
    }

    fn missing(&self, now: u64) -> Rational {
        let until_full = self.full() - rational(now);
        if until_full.is_positive() { until_full * &self.rate } else { Rational::zero() }
    }

    fn tokens(&self, now: u64) -> Rational {
        rational(self.capacity) - self.missing(now)
    }

    fn wait_for(&self, now: u64, tokens: u64) -> u64 {
        ceil(&((rational(tokens) - self.tokens(now)) / &self.rate))
    }
}

impl Model for Bucket {
    fn read(&mut self, now: u64) -> bool {
        let latest = rational(now) + rational(self.capacity) / &self.rate;
        let future = self.full() > latest;
        if future {
            self.set_full_at(&latest);
        }
        future
    }

    fn admits(&self, now: u64, cost: u64) -> bool {
        self.tokens(now) >= rational(cost)
    }

    fn charge(&mut self, now: u64, cost: u64, _: u64) {
        let missing = self.missing(now) + rational(cost);
        let full_at = rational(now) + missing / &self.rate;
        self.set_full_at(&full_at);
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn used(&self, now: u64) -> u64 {
        ceil(&self.missing(now))
    }

    fn reset_after(&self, now: u64) -> u64 {
        self.wait_for(now, self.capacity)
    }

    fn next_after(&self, now: u64) -> u64 {
        let whole = self.tokens(now).floor().to_integer().to_u64().unwrap();
        if whole < self.capacity { self.wait_for(now, whole + 1) } else { 0 }
    }

    fn retry_after(&self, now: u64, cost: u64) -> u64 {
        self.wait_for(now, cost)
    }

    fn force(&mut self, now: u64, cost: u64, turn: u64) {
        self.read(now);
        let there = self.tokens(now);
        let cost = cost.min(self.capacity);
        if there >= rational(cost) {
            self.charge(now, cost, turn);
        } else {
            let empty = rational(now) + rational(self.capacity) / &self.rate;
            self.set_full_at(&empty);
        }
    }

    /// Never above full. Of a queue only the last may leave, and before its turn.
    fn refund(&mut self, now: u64, units: u64, taken: &Taken) -> u64 {
        let mut read = self.clone();
        read.read(now);
        let missing = read.missing(now);
        let given = units.min(ceil(&missing));
        // After a full drain what was taken has flowed in again.
        if rational(now - now.min(taken.at)) >= rational(read.capacity) / &read.rate {
            return 0;
        }
        if read.leaky && (taken.full_at.as_ref() != Some(&read.stored_at()) || missing <= rational(units)) {
            return 0;
        }
        if given > 0 {
            let left = missing - rational(units);
            let left = if left.is_positive() { left } else { Rational::zero() };
            let full_at = rational(now) + left / &read.rate;
            read.set_full_at(&full_at);
            *self = read;
        }
        given
    }

    fn full_at(&self) -> Option<(Rational, BigInt)> {
        self.leaky.then(|| self.stored_at())
    }

    /// Those before it are served at the rate.
    fn delay(&self, now: u64, taken: u64) -> u64 {
        if !self.leaky {
            return 0;
        }
        ceil(&((self.missing(now) - rational(taken)) / &self.rate))
    }

    fn span(&self) -> u64 {
        ceil(&(rational(self.capacity) / &self.rate))
    }

    fn boxed(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn renumber(&mut self, fresh: &dyn Model) {
        let fresh = fresh.as_any().downcast_ref::<Self>().unwrap();
        self.rate = fresh.rate.clone();
        self.capacity = fresh.capacity;
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
