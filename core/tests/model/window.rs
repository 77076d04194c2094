//! A fixed window by its definition: a count for each stretch of time.

use std::any::Any;

use super::{Model, Taken};

/// Where windows start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Starts {
    Clock,
    First,
    /// With days, weeks from Monday or months of UTC.
    Days,
    Weeks,
    Months,
}

#[derive(Clone)]
pub struct Window {
    limit: u64,
    period_us: u64,
    starts: Starts,
    /// The stored window, and what it counts.
    stored: Option<((u64, u64), u64)>,
}

const DAY: u64 = 86_400_000_000;

impl Window {
    pub fn new(limit: u64, period_us: u64, starts: Starts) -> Self {
        Self { limit, period_us, starts, stored: None }
    }

    /// The window that a request of `now` would open, or that `now` lies in.
    fn window(&self, now: u64) -> (u64, u64) {
        let multiple = |length: u64, offset: u64| {
            let start = (now + offset) / length * length;
            (start.saturating_sub(offset), start + length - offset)
        };
        match self.starts {
            Starts::First => (now, now + self.period_us),
            Starts::Clock => multiple(self.period_us, 0),
            Starts::Days => multiple(DAY, 0),
            // 1970 began on a Thursday, three days after a Monday.
            Starts::Weeks => multiple(7 * DAY, 3 * DAY),
            Starts::Months => {
                let (year, month) = month_of(now / DAY);
                let next = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
                (days_before(year, month) * DAY, days_before(next.0, next.1) * DAY)
            }
        }
    }

    fn end(&self, now: u64) -> u64 {
        self.stored.map_or(now, |((_, end), _)| end)
    }
}

fn leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn length(year: u64, month: u64) -> u64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970 to the first of a month, counted one by one.
fn days_before(year: u64, month: u64) -> u64 {
    let years: u64 = (1970..year).map(|year| if leap(year) { 366 } else { 365 }).sum();
    years + (1..month).map(|month| length(year, month)).sum::<u64>()
}

fn month_of(day: u64) -> (u64, u64) {
    let year = (1970..).find(|&year| days_before(year + 1, 1) > day).unwrap();
    let month = (1..=12).rev().find(|&month| days_before(year, month) <= day).unwrap();
    (year, month)
}

impl Model for Window {
    fn read(&mut self, now: u64) -> bool {
        let Some(((start, end), count)) = self.stored else { return false };
        let present = self.window(now);
        if start > present.0 {
            self.stored = Some((present, count));
            return true;
        }
        if now >= end {
            self.stored = None;
        }
        false
    }

    fn admits(&self, now: u64, cost: u64) -> bool {
        self.used(now) + cost <= self.limit
    }

    fn charge(&mut self, now: u64, cost: u64, _: u64) {
        let (window, count) = self.stored.unwrap_or((self.window(now), 0));
        self.stored = Some((window, count + cost));
    }

    fn capacity(&self) -> u64 {
        self.limit
    }

    fn used(&self, _: u64) -> u64 {
        self.stored.map_or(0, |(_, count)| count)
    }

    fn reset_after(&self, now: u64) -> u64 {
        self.end(now) - now
    }

    fn next_after(&self, now: u64) -> u64 {
        self.end(now) - now
    }

    fn retry_after(&self, now: u64, _: u64) -> u64 {
        self.end(now) - now
    }

    fn force(&mut self, now: u64, cost: u64, turn: u64) {
        let mut read = self.clone();
        let mend = read.read(now);
        let room = cost.min(read.limit.saturating_sub(read.used(now)));
        if room > 0 {
            read.charge(now, room, turn);
        }
        if mend || room > 0 {
            *self = read;
        }
    }

    fn refund(&mut self, now: u64, units: u64, taken: &Taken) -> u64 {
        let mut read = self.clone();
        read.read(now);
        let Some(((start, end), count)) =
            read.stored.filter(|((start, end), _)| (*start..*end).contains(&taken.at))
        else {
            return 0;
        };
        let given = units.min(count);
        // A window without a request has not begun.
        read.stored = (count > given).then_some(((start, end), count - given));
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
