//! A decision: the answer, and everything a client should be told.

use std::time::Duration;

use smallvec::SmallVec;

use crate::limit::Limit;
use crate::store::{Mode, Outcome, Request};

/// The answer to a request. Every duration is whole microseconds, rounded up.
#[derive(Clone, Debug)]
pub struct Decision {
    allowed: bool,
    never: bool,
    retry_after_us: u64,
    deciding: usize,
    standings: SmallVec<[Standing; 1]>,
}

/// Where one limit of the policy stands: after taking when admitted, before it when refused or
/// only asked.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The limit.
    of: Limit,
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

impl Standing {
    /// The limit's name, else its canonical notation.
    pub fn name(&self) -> &str {
        self.of.name()
    }

    pub(crate) fn of(&self) -> &Limit {
        &self.of
    }
}

impl Decision {
    pub(crate) fn new(request: &Request<'_>, outcome: &Outcome) -> Self {
        let Outcome { admitted, now, ref states } = *outcome;
        let taken = admitted && request.mode == Mode::Acquire;
        let mut strictest: Option<(Rank, usize)> = None;
        let mut standings = SmallVec::new();
        for (index, (limit, state)) in request.policy.limits().iter().zip(states).enumerate() {
            let algorithm = limit.algorithm();
            let measure = algorithm.measure(state, now);
            let mut rank = Rank { never: false, wait: 0, remaining: measure.remaining };
            if !taken && !algorithm.admits(state, now, request.cost) {
                rank.never = limit.never_admits(request.cost);
                rank.wait = if rank.never { 0 } else { algorithm.retry_after(state, now, request.cost) };
            }
            if strictest.is_none_or(|(best, _)| rank.is_stricter(best)) {
                strictest = Some((rank, index));
            }
            standings.push(Standing {
                of: limit.clone(),
                limit: limit.capacity(),
                used: measure.used,
                remaining: measure.remaining,
                reset_after: Duration::from_micros(measure.reset_after),
                next_after: (measure.next_after > 0).then(|| Duration::from_micros(measure.next_after)),
            });
        }
        let (rank, deciding) = strictest.unwrap_or_default();
        Self { allowed: admitted, never: rank.never, retry_after_us: rank.wait, deciding, standings }
    }

    /// Whether the request may pass.
    pub fn allowed(&self) -> bool {
        self.allowed
    }

    /// The capacity of the limit that decided.
    pub fn limit(&self) -> u64 {
        self.decided().limit
    }

    /// What is in use of it.
    pub fn used(&self) -> u64 {
        self.decided().used
    }

    /// What is left of it.
    pub fn remaining(&self) -> u64 {
        self.decided().remaining
    }

    /// How long to wait: the same cost is then admitted if nobody else came, and not a microsecond
    /// earlier. None when allowed, and when no wait helps ([`never`](Self::never)).
    pub fn retry_after(&self) -> Option<Duration> {
        (self.retry_after_us > 0).then(|| Duration::from_micros(self.retry_after_us))
    }

    /// Until nothing is owed.
    pub fn reset_after(&self) -> Duration {
        self.decided().reset_after
    }

    /// How long to hold an admitted request (leaky bucket), else zero.
    pub fn delay(&self) -> Duration {
        Duration::ZERO
    }

    /// The name of the limit that decided, else its canonical notation. Of several: never, then
    /// the longest wait, then the fewest left, then the order in the policy.
    pub fn limit_name(&self) -> &str {
        self.decided().name()
    }

    /// The place in the policy of the limit that decided.
    pub fn limit_index(&self) -> usize {
        self.deciding
    }

    /// Whether no wait helps: the cost is above the capacity, or everything is denied.
    pub fn never(&self) -> bool {
        self.never
    }

    /// Whether something decided in the store's place.
    pub fn degraded(&self) -> bool {
        false
    }

    /// Every limit's standing, in the order of the policy.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    pub(crate) fn decided(&self) -> &Standing {
        &self.standings[self.deciding]
    }
}

/// How strict one limit's answer is.
#[derive(Clone, Copy, Default)]
struct Rank {
    never: bool,
    wait: u64,
    remaining: u64,
}

impl Rank {
    fn is_stricter(self, other: Self) -> bool {
        let key = |rank: Self| (rank.never, rank.wait, u64::MAX - rank.remaining);
        key(self) > key(other)
    }
}
