//! A decision: the answer, and everything a client should be told.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use smallvec::SmallVec;

use crate::algorithm::{Algorithm, Measure, Seen};
use crate::clock::Now;
use crate::limit::Limit;
use crate::policy::Policy;
use crate::receipt::{Lease, Receipt};
use crate::stats::Ended;
use crate::store::charge::{Mode, Verdict};

/// The answer to a request. Every duration is whole microseconds, rounded up.
///
/// It holds what the store saw; what is told of it is computed when it is asked.
#[derive(Debug)]
pub struct Decision {
    policy: Policy,
    now: Now,
    seen: SmallVec<[Seen; 1]>,
    lease: Lease,
    key: SmallVec<[u8; 24]>,
    cost: u64,
    origin: u32,
    /// The place of the limit that decided, where no block did.
    deciding: u8,
    mode: Mode,
    admitted: bool,
    held: AtomicU8,
}

/// It is made for every request: what a processor moves in a few steps.
const _: () = assert!(size_of::<Decision>() == 128);

// What it took: can be given back, was, or is the original's to give back.
const OPEN: u8 = 0;
const SETTLED: u8 = 1;
const CLONED: u8 = 2;

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
    fn new(of: &'a Limit, measure: &Measure) -> Self {
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

impl Decision {
    #[inline]
    pub(crate) fn new(
        policy: Policy,
        key: &[u8],
        cost: u64,
        mode: Mode,
        verdict: Verdict<'_>,
        origin: u32,
    ) -> Self {
        let Verdict { admitted, now, seen, lease } = verdict;
        let mut decision = Self {
            policy,
            now,
            seen: SmallVec::from_slice(seen),
            lease,
            key: SmallVec::from_slice(key),
            cost,
            origin,
            deciding: 0,
            mode,
            admitted,
            held: AtomicU8::new(OPEN),
        };
        if decision.seen.len() > 1 {
            decision.deciding = decision.strictest();
        }
        decision
    }

    /// The place of the limit that decides: never, then the longest wait, then the fewest left.
    fn strictest(&self) -> u8 {
        let mut strictest: Option<(Rank, usize)> = None;
        for place in 0..self.seen.len() {
            let rank = Rank {
                never: self.refuses(place) && self.is_never(place),
                wait: if self.refuses(place) && !self.is_never(place) { self.wait(place) } else { 0 },
                remaining: self.measure(place).remaining,
            };
            if strictest.is_none_or(|(best, _)| rank.is_stricter(best)) {
                strictest = Some((rank, place));
            }
        }
        // A policy has at most 16 limits.
        strictest.map_or(0, |(_, place)| place as u8)
    }

    #[inline]
    fn deciding(&self) -> usize {
        usize::from(self.deciding)
    }

    fn refuses(&self, place: usize) -> bool {
        !self.admitted && !self.limit_at(place).algorithm().admits(&self.seen[place], self.now, self.cost)
    }

    fn is_never(&self, place: usize) -> bool {
        self.limit_at(place).never_admits(self.cost)
    }

    fn wait(&self, place: usize) -> u64 {
        self.limit_at(place).algorithm().retry_after(&self.seen[place], self.now, self.cost)
    }

    #[inline]
    fn measure(&self, place: usize) -> Measure {
        self.limit_at(place).algorithm().measure(&self.seen[place], self.now)
    }

    fn limit_at(&self, place: usize) -> &Limit {
        &self.policy.limits()[place]
    }

    /// How long the key is still blocked.
    fn blocked_for(&self) -> Option<u64> {
        match self.seen.first() {
            Some(Seen::Blocked(end)) => Some(end.saturating_sub(self.now.steady)),
            _ => None,
        }
    }

    fn taken(&self) -> u64 {
        if self.admitted && self.mode == Mode::Acquire { self.cost } else { 0 }
    }

    /// Whether the request may pass.
    #[inline]
    pub fn allowed(&self) -> bool {
        self.admitted
    }

    /// The capacity of the limit that decided.
    pub fn limit(&self) -> u64 {
        if self.is_blocked() { 0 } else { self.limit_at(self.deciding()).capacity() }
    }

    /// What is in use of it.
    #[inline]
    pub fn used(&self) -> u64 {
        self.decided().used
    }

    /// What is left of it.
    #[inline]
    pub fn remaining(&self) -> u64 {
        self.decided().remaining
    }

    /// How long to wait: the same cost is then admitted if nobody else came, and not a microsecond
    /// earlier. None when allowed, and when no wait helps ([`never`](Self::never)).
    pub fn retry_after(&self) -> Option<Duration> {
        if self.admitted {
            return None;
        }
        let us = match self.blocked_for() {
            Some(us) => us,
            None if self.is_never(self.deciding()) => 0,
            None => self.wait(self.deciding()),
        };
        (us > 0).then(|| Duration::from_micros(us))
    }

    /// Until nothing is owed.
    pub fn reset_after(&self) -> Duration {
        self.decided().reset_after
    }

    /// How long to hold an admitted request until its turn (leaky bucket), else zero; of several
    /// limits the longest.
    pub fn delay(&self) -> Duration {
        if !self.admitted {
            return Duration::ZERO;
        }
        let delays = self.policy.limits().iter().zip(&self.seen);
        let delays = delays.map(|(limit, seen)| limit.algorithm().delay(seen, self.now, self.taken()));
        Duration::from_micros(delays.max().unwrap_or(0))
    }

    /// The name of the limit that decided, else its canonical notation. Of several: never, then
    /// the longest wait, then the fewest left, then the order in the policy.
    pub fn limit_name(&self) -> &str {
        if self.is_blocked() { Limit::block().name() } else { self.limit_at(self.deciding()).name() }
    }

    /// The place in the policy, and in `standings`, of the limit that decided; none where the key is
    /// blocked.
    pub fn limit_index(&self) -> Option<usize> {
        (!self.is_blocked()).then_some(self.deciding())
    }

    /// Whether the key is blocked.
    pub fn is_blocked(&self) -> bool {
        matches!(self.seen.first(), Some(Seen::Blocked(_)))
    }

    /// Whether no wait helps: the cost is above the capacity, or everything is denied.
    pub fn never(&self) -> bool {
        !self.admitted && !self.is_blocked() && self.is_never(self.deciding())
    }

    /// Whether something decided in the store's place.
    pub fn degraded(&self) -> bool {
        false
    }

    /// Where the limit stands that decided; the block, where the key is blocked.
    #[inline]
    pub fn decided(&self) -> Standing<'_> {
        match self.blocked_for() {
            Some(us) => Standing::new(
                Limit::block(),
                &Measure { reset_after: us, next_after: us, ..Measure::default() },
            ),
            None => Standing::new(self.limit_at(self.deciding()), &self.measure(self.deciding())),
        }
    }

    /// Every limit's standing, in the order of the policy; the block's alone where the key is blocked.
    pub fn standings(&self) -> impl ExactSizeIterator<Item = Standing<'_>> {
        (0..self.seen.len()).map(|place| {
            if self.is_blocked() {
                return self.decided();
            }
            Standing::new(self.limit_at(place), &self.measure(place))
        })
    }

    /// The key that was asked about.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// What it took; none when it took nothing, and for a clone: only the original can be settled.
    pub fn receipt(&self) -> Option<Receipt> {
        let cost = self.taken();
        if cost == 0 || self.held.load(Ordering::Acquire) == CLONED {
            return None;
        }
        let full_at = |(limit, seen): (&Limit, &Seen)| match (limit.algorithm(), seen) {
            (Algorithm::LeakyBucket(_), Seen::Bucket(tat)) => Some(tat.0),
            _ => None,
        };
        let full_at = self.policy.limits().iter().zip(&self.seen).filter_map(full_at).last();
        Some(Receipt {
            at: self.now,
            cost,
            lease: self.lease,
            full_at: full_at.unwrap_or_default(),
            origin: self.origin,
        })
    }

    /// Its receipt, the first time only.
    pub(crate) fn settle(&self) -> Option<Receipt> {
        let receipt = self.receipt()?;
        let first = self.held.compare_exchange(OPEN, SETTLED, Ordering::AcqRel, Ordering::Acquire);
        first.is_ok().then_some(receipt)
    }

    pub(crate) fn ended(&self) -> Ended {
        if self.admitted {
            Ended::Allowed
        } else if self.is_blocked() {
            Ended::Blocked
        } else if self.never() {
            Ended::Never
        } else {
            Ended::Refused
        }
    }

    pub(crate) fn decided_by_concurrency(&self) -> bool {
        self.decided().of().is_concurrency()
    }
}

/// A clone tells the same, but holds nothing that could be given back.
impl Clone for Decision {
    fn clone(&self) -> Self {
        Self {
            policy: self.policy.clone(),
            seen: self.seen.clone(),
            key: self.key.clone(),
            held: AtomicU8::new(CLONED),
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
