//! A fixed window by its definition: a count for each stretch of time.

use std::any::Any;

use super::Model;

#[derive(Clone)]
pub struct Window {
    limit: u64,
    period_us: u64,
    from_first: bool,
    /// Where the stored window starts, and what it counts.
    stored: Option<(u64, u64)>,
}

impl Window {
    pub fn new(limit: u64, period_us: u64, from_first: bool) -> Self {
        Self { limit, period_us, from_first, stored: None }
    }

    /// The latest start that a window of now can have.
    fn start(&self, now: u64) -> u64 {
        if self.from_first { now } else { now / self.period_us * self.period_us }
    }

    fn end(&self, now: u64) -> u64 {
        self.stored.map_or(now, |(start, _)| start + self.period_us)
    }
}

impl Model for Window {
    fn read(&mut self, now: u64) -> bool {
        let Some((start, count)) = self.stored else { return false };
        if start > self.start(now) {
            self.stored = Some((self.start(now), count));
            return true;
        }
        if now >= start + self.period_us {
            self.stored = None;
        }
        false
    }

    fn admits(&self, now: u64, cost: u64) -> bool {
        self.used(now) + cost <= self.limit
    }

    fn charge(&mut self, now: u64, cost: u64, _: u64) {
        let (start, count) = self.stored.unwrap_or((self.start(now), 0));
        self.stored = Some((start, count + cost));
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
