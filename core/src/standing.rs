//! Where one limit of a policy stands.

use std::time::Duration;

use crate::algorithm::Measure;
use crate::limit::Limit;

/// Where one limit of the policy stands: after taking when admitted, before it when refused or
/// only asked.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    /// The limit.
    of: &'a Limit,
    /// The largest cost that can ever pass.
    pub limit: u64,
    /// What is in use; above `limit` only where the limit was lowered meanwhile.
    pub used: u64,
    /// What is left.
    pub remaining: u64,
    /// Until nothing is owed.
    pub reset_after: Duration,
    /// Until `remaining` grows by one; none when nothing is in use.
    pub next_after: Option<Duration>,
}

impl<'a> Standing<'a> {
    pub(crate) fn new(of: &'a Limit, measure: &Measure) -> Self {
        Self {
            of,
            limit: of.capacity(),
            used: measure.used,
            remaining: measure.remaining,
            reset_after: Duration::from_micros(measure.reset_after),
            next_after: (measure.next_after > 0).then(|| Duration::from_micros(measure.next_after)),
        }
    }

    /// The limit's name, else its canonical notation.
    pub fn name(&self) -> &'a str {
        self.of.name()
    }

    pub(crate) fn of(&self) -> &'a Limit {
        self.of
    }
}
