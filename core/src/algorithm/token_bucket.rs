//! The token bucket, by the instant at which it would be full (the generic cell rate algorithm).
//!
//! With T the time a token takes, B the capacity and `tat` that instant: a cost n is admitted when
//! `max(tat, now) + n T <= now + B T`, and then `tat` becomes the left side.

use super::interval::{Interval, MAX_SPAN_US, Span};
use super::{Found, Measure};
use crate::{Error, Result};

/// A token bucket's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenBucket {
    /// Tokens that flow in each period.
    pub count: u64,
    pub period_us: u64,
    pub capacity: u64,
    pub interval: Interval,
    one: Span,
    /// Capacity x T: from empty to full.
    pub full: Span,
}

/// The instant at which a bucket is full again: microseconds since 1970 and a fraction of 1/q.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tat(pub Span);

impl TokenBucket {
    /// Numbers whose ranges were checked; here the drain is.
    pub fn new(count: u64, period_us: u64, capacity: u64) -> Result<Self> {
        let drain = u128::from(capacity) * u128::from(period_us);
        if drain > u128::from(MAX_SPAN_US) * u128::from(count) {
            return Err(Error::limit(format!(
                "a capacity of {capacity} at {count} per {period_us} microseconds takes {} microseconds to refill: \
                 at most {MAX_SPAN_US} (2^50, 35 years) are possible",
                drain.div_ceil(u128::from(count))
            )));
        }
        let interval = Interval::new(count, period_us);
        Ok(Self {
            count,
            period_us,
            capacity,
            interval,
            one: interval.times(1),
            full: interval.times(capacity),
        })
    }

    /// Never later than a full drain from now: a state from the future, or one written when the
    /// bucket was larger or slower, blocks nobody longer.
    #[inline]
    pub fn read(&self, mut tat: Tat, now: u64) -> (Tat, Found) {
        let q = self.interval.q;
        if u64::from(tat.0.fraction) >= q {
            // Written under numbers with another q, which has no such fraction.
            tat.0 = Span { whole: tat.0.whole + 1, fraction: 0 };
        }
        let latest = self.full_from(now);
        if earlier(latest, tat.0) {
            return (Tat(latest), Found::Future);
        }
        (tat, Found::Sound)
    }

    #[inline]
    pub fn admits(&self, tat: Tat, now: u64, cost: u64) -> bool {
        cost <= self.capacity && !earlier(self.full_from(now), self.after(tat, now, cost))
    }

    #[inline(always)]
    fn after(&self, tat: Tat, now: u64, cost: u64) -> Span {
        let span = if cost == 1 { self.one } else { self.interval.times(cost) };
        self.sum(base(tat, now), span)
    }

    /// The state after taking `cost` (at most the capacity); what is not there is forgiven.
    #[inline]
    pub fn charged(&self, tat: Tat, now: u64, cost: u64) -> Tat {
        let full = self.full_from(now);
        let after = self.after(tat, now, cost);
        Tat(if earlier(full, after) { full } else { after })
    }

    /// Gives back up to `units` of what was taken at `at`, never above full, and nothing when a full
    /// drain has passed since: then what was taken has flowed in again. Of a queue (`only_last`: the
    /// instant of fullness that its charge left) only the last may leave, and only before its turn.
    pub fn refund(&self, tat: &mut Tat, now: u64, units: u64, at: u64, only_last: Option<Span>) -> u64 {
        if !earlier(Span { whole: now, fraction: 0 }, self.full_from(at)) {
            return 0;
        }
        let owed = self.owed(*tat, now);
        let back = u128::from(units) * u128::from(self.interval.p);
        if only_last.is_some_and(|last| last != tat.0 || owed <= back) {
            return 0;
        }
        if owed == 0 {
            return 0;
        }
        let given = units.min(self.interval.units(owed));
        let ticks = owed.saturating_sub(back);
        let q = u128::from(self.interval.q);
        tat.0 = Span { whole: now + (ticks / q) as u64, fraction: (ticks % q) as u32 };
        given
    }

    #[inline(always)]
    pub fn measure(&self, tat: Tat, now: u64) -> Measure {
        let Interval { p, .. } = self.interval;
        let owed = self.owed(tat, now);
        let used = self.interval.units(owed);
        let remaining = self.capacity.saturating_sub(used);
        // One token more is there when the debt has shrunk to (used - 1) tokens.
        let next = owed.saturating_sub(u128::from(used.saturating_sub(1)) * u128::from(p));
        Measure {
            used,
            remaining,
            reset_after: self.interval.micros(owed),
            next_after: self.interval.micros(next),
        }
    }

    pub fn retry_after(&self, tat: Tat, now: u64, cost: u64) -> u64 {
        let p = u128::from(self.interval.p);
        let over = self.owed(tat, now) + u128::from(cost) * p;
        self.interval.micros(over.saturating_sub(u128::from(self.capacity) * p))
    }

    /// The debt before `taken` tokens were taken, rounded up to microseconds.
    pub fn debt_before(&self, tat: Tat, now: u64, taken: u64) -> u64 {
        let taken = u128::from(taken) * u128::from(self.interval.p);
        self.interval.micros(self.owed(tat, now).saturating_sub(taken))
    }

    /// The debt: `max(tat, now) - now`, in units of 1/q microseconds.
    fn owed(&self, tat: Tat, now: u64) -> u128 {
        let span = base(tat, now);
        self.interval.ticks(Span { whole: span.whole - now, ..span })
    }

    #[inline]
    fn full_from(&self, now: u64) -> Span {
        Span { whole: now + self.full.whole, ..self.full }
    }

    #[inline]
    fn sum(&self, a: Span, b: Span) -> Span {
        let fraction = u64::from(a.fraction) + u64::from(b.fraction);
        let carry = u64::from(fraction >= self.interval.q);
        Span { whole: a.whole + b.whole + carry, fraction: (fraction - carry * self.interval.q) as u32 }
    }
}

#[inline]
fn base(tat: Tat, now: u64) -> Span {
    if tat.0.whole >= now { tat.0 } else { Span { whole: now, fraction: 0 } }
}

#[inline]
fn earlier(a: Span, b: Span) -> bool {
    (a.whole, a.fraction) < (b.whole, b.fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(count: u64, period_us: u64, capacity: u64) -> TokenBucket {
        TokenBucket::new(count, period_us, capacity).unwrap()
    }

    #[test]
    fn six_hundred_million_a_second_is_not_a_billion() {
        let fast = bucket(600_000_000, 1_000_000, 600_000_000);
        let mut tat = fast.charged(Tat::default(), 0, 600_000_000);
        let mut admitted = 0;
        for now in 1..=1000 {
            while fast.admits(tat, now, 1) {
                tat = fast.charged(tat, now, 1);
                admitted += 1;
            }
        }
        assert_eq!(admitted, 600_000);
    }

    #[test]
    fn a_full_bucket_admits_its_capacity_one_by_one_and_at_once() {
        let odd = bucket(7, 1_000_003, 7);
        let mut tat = Tat::default();
        for _ in 0..7 {
            assert!(odd.admits(tat, 10, 1));
            tat = odd.charged(tat, 10, 1);
        }
        assert!(!odd.admits(tat, 10, 1));
        assert_eq!(tat, odd.charged(Tat::default(), 10, 7));
    }

    #[test]
    fn a_state_from_the_future_is_read_as_made_now() {
        let bucket = bucket(1, 1_000_000, 5);
        let (tat, found) = bucket.read(bucket.charged(Tat::default(), 1_000_000_000, 5), 0);
        assert_eq!((bucket.measure(tat, 0).reset_after, found), (5_000_000, Found::Future));
        assert_eq!(bucket.read(tat, 0), (tat, Found::Sound));
    }

    #[test]
    fn a_drain_beyond_the_domain_is_refused_when_the_limit_is_made() {
        assert!(TokenBucket::new(1, MAX_SPAN_US, 1).is_ok());
        let error = TokenBucket::new(1, MAX_SPAN_US / 2, 3).unwrap_err();
        assert!(error.to_string().contains("capacity of 3"), "{error}");
    }
}
