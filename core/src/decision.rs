//! A decision: the answer, and everything a client should be told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use smallvec::SmallVec;

use crate::algorithm::interval::Span;
use crate::algorithm::{Algorithm, Measure, Seen};
use crate::limit::Limit;
use crate::receipt::Receipt;
use crate::stats::Ended;
use crate::store::charge::{Group, Mode, Outcome};

/// The answer to a request. Every duration is whole microseconds, rounded up.
#[derive(Debug)]
pub struct Decision {
    allowed: bool,
    never: bool,
    retry_after_us: u64,
    delay_us: u64,
    /// The place of the limit that decided; none where a block did.
    deciding: Option<usize>,
    standings: SmallVec<[Standing; 1]>,
    key: SmallVec<[u8; 32]>,
    receipt: Option<Receipt>,
    settled: AtomicBool,
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
    fn new(of: &Limit, measure: &Measure) -> Self {
        Self {
            of: of.clone(),
            limit: of.capacity(),
            used: measure.used,
            remaining: measure.remaining,
            reset_after: Duration::from_micros(measure.reset_after),
            next_after: (measure.next_after > 0).then(|| Duration::from_micros(measure.next_after)),
        }
    }

    /// The limit's name, else its canonical notation.
    pub fn name(&self) -> &str {
        self.of.name()
    }

    pub(crate) fn of(&self) -> &Limit {
        &self.of
    }
}

impl Decision {
    pub(crate) fn new(group: &Group<'_>, mode: Mode, outcome: &Outcome, origin: u32) -> Self {
        let Outcome { admitted, now, ref seen, lease, blocked } = *outcome;
        let first = group.charges.first();
        let key = first.map_or_else(SmallVec::new, |charge| charge.key.into());
        if let Some(end) = blocked {
            return Self::blocked(key, end.saturating_sub(now.steady));
        }
        let mut strictest: Option<(Rank, usize)> = None;
        let mut delay_us = 0;
        let mut full_at = Span::default();
        let mut standings = SmallVec::new();
        for (index, (charge, seen)) in group.charges.iter().zip(seen).enumerate() {
            let algorithm = charge.bucket.algorithm();
            let measure = algorithm.measure(seen, now);
            let mut rank = Rank { never: false, wait: 0, remaining: measure.remaining };
            if admitted {
                let taken = if charge.takes(mode) { charge.cost } else { 0 };
                delay_us = algorithm.delay(seen, now, taken).max(delay_us);
            } else if !algorithm.admits(seen, now, charge.cost) {
                rank.never = charge.never_admitted();
                rank.wait = if rank.never { 0 } else { algorithm.retry_after(seen, now, charge.cost) };
            }
            if strictest.is_none_or(|(best, _)| rank.is_stricter(best)) {
                strictest = Some((rank, index));
            }
            if let (Algorithm::LeakyBucket(_), Seen::Bucket(tat)) = (algorithm, seen) {
                full_at = tat.0;
            }
            standings.push(Standing::new(charge.bucket.limit(), &measure));
        }
        let (rank, deciding) = strictest.unwrap_or_default();
        let cost = first.map_or(0, |charge| charge.cost);
        let taken = admitted && mode == Mode::Acquire && cost > 0;
        Self {
            allowed: admitted,
            never: rank.never,
            retry_after_us: rank.wait,
            delay_us,
            deciding: Some(deciding),
            standings,
            key,
            receipt: taken.then_some(Receipt { at: now, cost, lease, full_at, origin }),
            settled: AtomicBool::new(false),
        }
    }

    /// A key that is blocked for so long: its own limit stands in the policy's place.
    fn blocked(key: SmallVec<[u8; 32]>, wait: u64) -> Self {
        let measure = Measure { reset_after: wait, next_after: wait, ..Measure::default() };
        Self {
            allowed: false,
            never: false,
            retry_after_us: wait,
            delay_us: 0,
            deciding: None,
            standings: smallvec::smallvec![Standing::new(Limit::block(), &measure)],
            key,
            receipt: None,
            settled: AtomicBool::new(false),
        }
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

    /// How long to hold an admitted request until its turn (leaky bucket), else zero; of several
    /// limits the longest.
    pub fn delay(&self) -> Duration {
        Duration::from_micros(self.delay_us)
    }

    /// The name of the limit that decided, else its canonical notation. Of several: never, then
    /// the longest wait, then the fewest left, then the order in the policy.
    pub fn limit_name(&self) -> &str {
        self.decided().name()
    }

    /// The place in the policy, and in `standings`, of the limit that decided; none where the key is
    /// blocked.
    pub fn limit_index(&self) -> Option<usize> {
        self.deciding
    }

    /// Whether the key is blocked.
    pub fn is_blocked(&self) -> bool {
        self.deciding.is_none()
    }

    /// Whether no wait helps: the cost is above the capacity, or everything is denied.
    pub fn never(&self) -> bool {
        self.never
    }

    /// Whether something decided in the store's place.
    pub fn degraded(&self) -> bool {
        false
    }

    /// Every limit's standing, in the order of the policy; the block's alone where the key is blocked.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// The key that was asked about.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// What it took; none when it took nothing, and for a clone: only the original can be settled.
    pub fn receipt(&self) -> Option<Receipt> {
        self.receipt
    }

    /// Its receipt, the first time only.
    pub(crate) fn settle(&self) -> Option<Receipt> {
        let first = || !self.settled.swap(true, Ordering::AcqRel);
        self.receipt.filter(|_| first())
    }

    pub(crate) fn ended(&self) -> Ended {
        match self {
            Self { allowed: true, .. } => Ended::Allowed,
            Self { deciding: None, .. } => Ended::Blocked,
            Self { never: true, .. } => Ended::Never,
            _ => Ended::Refused,
        }
    }

    pub(crate) fn decided_by_concurrency(&self) -> bool {
        self.decided().of().is_concurrency()
    }

    pub(crate) fn decided(&self) -> &Standing {
        &self.standings[self.deciding.unwrap_or(0)]
    }
}

/// A clone tells the same, but holds nothing that could be given back.
impl Clone for Decision {
    fn clone(&self) -> Self {
        Self {
            standings: self.standings.clone(),
            key: self.key.clone(),
            receipt: None,
            settled: AtomicBool::new(true),
            ..*self
        }
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
