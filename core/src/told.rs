//! What is told of a decision: every field, computed from what the store saw when it is asked.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use smallvec::SmallVec;

use crate::algorithm::{Algorithm, Measure, Seen};
use crate::clock::Now;
use crate::limit::Limit;
use crate::policy::Policy;
use crate::receipt::{Lease, Receipt};
use crate::standing::Standing;
use crate::stats::Ended;
use crate::store::charge::{Mode, Verdict};

/// What was decided, without its key and its policy: for a binding whose language keeps both. The
/// limiter [tells](crate::Limiter::tell) what it says.
#[derive(Debug)]
pub struct BareDecision {
    now: Now,
    seen: SmallVec<[Seen; 1]>,
    lease: Lease,
    cost: u64,
    origin: u32,
    /// The place of the limit that decided, where no block did; of several found when it is asked.
    deciding: AtomicU8,
    ruling: Ruling,
    by: By,
    held: AtomicU8,
}

/// What was ruled, and whether something was to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ruling {
    Admitted,
    Refused,
    WouldAdmit,
    WouldRefuse,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Store,
    /// The same limits in this process, or its share of them: the policy is that of the shares, and a
    /// larger cost is taken as the share.
    Local,
    /// As `Local`, but the cost is above what the whole could ever admit.
    LocalNever,
    /// Nobody: all are admitted, or all refused.
    Rule,
}

/// It is made for every request: what a processor moves in a few steps.
const _: () = assert!(size_of::<BareDecision>() == 88);

/// The place where it was not asked yet: a policy has at most 16 limits.
const UNASKED: u8 = u8::MAX;

// What it took: can be given back, was, or is the original's to give back.
const OPEN: u8 = 0;
const SETTLED: u8 = 1;
const CLONED: u8 = 2;

/// What a decision tells, under the policy that it was decided by. Every duration is whole
/// microseconds, rounded up.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    policy: &'a Policy,
    bare: &'a BareDecision,
}

impl BareDecision {
    #[inline]
    pub(crate) fn new(cost: u64, mode: Mode, verdict: Verdict<'_>, origin: u32, by: By) -> Self {
        let Verdict { admitted, now, seen, lease } = verdict;
        let (seen, deciding) = match seen {
            [only] => (SmallVec::from_buf([*only]), 0),
            _ => (SmallVec::from_slice(seen), UNASKED),
        };
        let (deciding, held) = (AtomicU8::new(deciding), AtomicU8::new(OPEN));
        let ruling = match (mode, admitted) {
            (Mode::Peek, true) => Ruling::WouldAdmit,
            (Mode::Peek, false) => Ruling::WouldRefuse,
            (_, true) => Ruling::Admitted,
            (_, false) => Ruling::Refused,
        };
        Self { now, seen, lease, cost, origin, deciding, ruling, by, held }
    }

    /// What it tells under the policy that decided. (Under one of fewer limits it may tell nonsense.)
    #[inline]
    pub fn told<'a>(&'a self, policy: &'a Policy) -> Told<'a> {
        Told { policy, bare: self }
    }

    /// Whether the request may pass.
    #[inline]
    pub fn allowed(&self) -> bool {
        matches!(self.ruling, Ruling::Admitted | Ruling::WouldAdmit)
    }

    /// Whether this process decided by its [shares](crate::Limiter::shares) of the limits: then it is told
    /// under those.
    #[inline]
    pub fn is_by_share(&self) -> bool {
        matches!(self.by, By::Local | By::LocalNever)
    }

    /// Marks what it took as given back, or settled; true the first time.
    pub(crate) fn settle(&self) -> bool {
        self.held.compare_exchange(OPEN, SETTLED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Marks it as not settled after all, where the store surely did nothing.
    pub(crate) fn keep<T>(&self, settled: crate::Result<T>) -> crate::Result<T> {
        if settled.as_ref().is_err_and(|error| !error.may_have_happened()) {
            self.held.store(OPEN, Ordering::Release);
        }
        settled
    }
}

/// A clone tells the same, but holds nothing that could be given back.
impl Clone for BareDecision {
    fn clone(&self) -> Self {
        let deciding = AtomicU8::new(self.deciding.load(Ordering::Relaxed));
        Self { seen: self.seen.clone(), deciding, held: AtomicU8::new(CLONED), ..*self }
    }
}

impl<'a> Told<'a> {
    /// The place of the limit that decides: never, then the longest wait, then the fewest left.
    fn strictest(self) -> u8 {
        let mut strictest: Option<(Rank, usize)> = None;
        for place in 0..self.bare.seen.len() {
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
    fn deciding(self) -> usize {
        let mut place = self.bare.deciding.load(Ordering::Relaxed);
        if place == UNASKED {
            place = self.strictest();
            self.bare.deciding.store(place, Ordering::Relaxed);
        }
        usize::from(place)
    }

    /// Whether that limit alone would refuse.
    pub(crate) fn refuses(self, place: usize) -> bool {
        !self.bare.allowed()
            && !self.limit_at(place).algorithm().admits(
                &self.bare.seen[place],
                self.bare.now,
                self.cost_at(place),
            )
    }

    fn is_never(self, place: usize) -> bool {
        self.bare.by != By::Rule && self.limit_at(place).never_admits(self.cost_at(place))
    }

    fn wait(self, place: usize) -> u64 {
        self.limit_at(place).algorithm().retry_after(
            &self.bare.seen[place],
            self.bare.now,
            self.cost_at(place),
        )
    }

    /// What is asked of a limit: of a share, which a larger cost exceeds, at most the share.
    #[inline]
    fn cost_at(self, place: usize) -> u64 {
        match self.bare.by {
            By::Local => self.bare.cost.min(self.limit_at(place).capacity()),
            _ => self.bare.cost,
        }
    }

    #[inline]
    fn measure(self, place: usize) -> Measure {
        self.limit_at(place).algorithm().measure(&self.bare.seen[place], self.bare.now)
    }

    fn limit_at(self, place: usize) -> &'a Limit {
        // A bare decision may be told by a limiter that has fewer limits.
        self.policy.limits().get(place).unwrap_or_else(|| Limit::block())
    }

    /// How long the key is still blocked.
    fn blocked_for(self) -> Option<u64> {
        match self.bare.seen.first() {
            Some(Seen::Blocked(end)) => Some(end.saturating_sub(self.bare.now.steady)),
            _ => None,
        }
    }

    fn taken(self) -> u64 {
        if self.bare.ruling == Ruling::Admitted { self.bare.cost } else { 0 }
    }

    /// Whether the request may pass.
    #[inline]
    pub fn allowed(self) -> bool {
        self.bare.allowed()
    }

    /// The capacity of the limit that decided.
    pub fn limit(self) -> u64 {
        if self.is_blocked() { 0 } else { self.limit_at(self.deciding()).capacity() }
    }

    /// What is in use of it.
    #[inline]
    pub fn used(self) -> u64 {
        self.decided().used
    }

    /// What is left of it.
    #[inline]
    pub fn remaining(self) -> u64 {
        self.decided().remaining
    }

    /// How long to wait: the same cost is then admitted if nobody else came, and not a microsecond
    /// earlier. None when allowed, and when no wait helps ([`never`](Self::never)).
    pub fn retry_after(self) -> Option<Duration> {
        if self.bare.allowed() {
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
    pub fn reset_after(self) -> Duration {
        self.decided().reset_after
    }

    /// How long to hold an admitted request until its turn (leaky bucket), else zero; of several
    /// limits the longest.
    pub fn delay(self) -> Duration {
        if !self.bare.allowed() {
            return Duration::ZERO;
        }
        let delays = self.policy.limits().iter().zip(&self.bare.seen);
        let delays = delays.map(|(limit, seen)| {
            limit.algorithm().delay(seen, self.bare.now, self.taken().min(limit.capacity()))
        });
        Duration::from_micros(delays.max().unwrap_or(0))
    }

    /// The name of the limit that decided, else its canonical notation. Of several: never, then
    /// the longest wait, then the fewest left, then the order in the policy.
    pub fn limit_name(self) -> &'a str {
        if self.is_blocked() { Limit::block().name() } else { self.limit_at(self.deciding()).name() }
    }

    /// The place in the policy, and in `standings`, of the limit that decided; none where the key is
    /// blocked.
    pub fn limit_index(self) -> Option<usize> {
        (!self.is_blocked()).then_some(self.deciding())
    }

    /// Whether the key is blocked.
    pub fn is_blocked(self) -> bool {
        matches!(self.bare.seen.first(), Some(Seen::Blocked(_)))
    }

    /// Whether no wait helps: the cost is above the capacity, or everything is denied.
    pub fn never(self) -> bool {
        !self.bare.allowed() && !self.is_blocked() && self.is_never(self.deciding())
    }

    /// Whether something decided in the store's place.
    pub fn degraded(self) -> bool {
        self.bare.by != By::Store
    }

    /// The same as a date.
    pub(crate) fn date(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_micros(self.bare.now.wall)
    }

    /// The store's time when it was decided.
    pub(crate) fn now(self) -> Now {
        self.bare.now
    }

    /// Whether nobody decided: everyone is admitted, or refused, and nothing is known of what is left.
    pub(crate) fn is_by_rule(self) -> bool {
        self.bare.by == By::Rule
    }

    /// Where the limit stands that decided; the block, where the key is blocked.
    #[inline]
    pub fn decided(self) -> Standing<'a> {
        match self.blocked_for() {
            Some(us) => Standing::new(
                Limit::block(),
                &Measure { reset_after: us, next_after: us, ..Measure::default() },
            ),
            None => Standing::new(self.limit_at(self.deciding()), &self.measure(self.deciding())),
        }
    }

    /// Where the limit at this place of the policy stands; the block, where the key is blocked.
    pub fn standing(self, place: usize) -> Standing<'a> {
        match self.bare.seen.get(place) {
            None | Some(Seen::Blocked(_)) => self.decided(),
            Some(_) => Standing::new(self.limit_at(place), &self.measure(place)),
        }
    }

    /// Every limit's standing, in the order of the policy; the block's alone where the key is blocked.
    pub fn standings(self) -> impl ExactSizeIterator<Item = Standing<'a>> + Clone {
        (0..self.bare.seen.len()).map(move |place| self.standing(place))
    }

    /// What it took; none when it took nothing, and for a clone: only the original can be settled.
    pub fn receipt(self) -> Option<Receipt> {
        let cost = self.taken();
        if cost == 0 || self.degraded() || self.bare.held.load(Ordering::Acquire) == CLONED {
            return None;
        }
        let full_at = |(limit, seen): (&Limit, &Seen)| match (limit.algorithm(), seen) {
            (Algorithm::LeakyBucket(_), Seen::Bucket(tat)) => Some(tat.0),
            _ => None,
        };
        let full_at = self.policy.limits().iter().zip(&self.bare.seen).filter_map(full_at).next_back();
        Some(Receipt {
            at: self.bare.now,
            cost,
            lease: self.bare.lease,
            full_at: full_at.unwrap_or_default(),
            origin: self.bare.origin,
        })
    }

    pub(crate) fn ended(self) -> Ended {
        if self.bare.allowed() {
            Ended::Allowed
        } else if self.is_blocked() {
            Ended::Blocked
        } else if self.never() {
            Ended::Never
        } else {
            Ended::Refused
        }
    }

    pub(crate) fn decided_by_concurrency(self) -> bool {
        self.decided().of().is_concurrency()
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
