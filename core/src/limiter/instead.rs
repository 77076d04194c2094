//! Deciding in the store's place while it does not.

use smallvec::SmallVec;

use super::{Inner, Limiter};
use crate::algorithm::{Seen, Tally};
use crate::clock::{Now, Time};
use crate::failure::OnStoreFailure;
use crate::policy::Policy;
use crate::stats::Ended;
use crate::store::StandIn;
use crate::store::bucket::Bucket;
use crate::store::charge::{Charge, Group, Mode, Request, Verdict};
use crate::told::{BareDecision, By};
use crate::{Error, ErrorKind, Result};

/// What a limiter on a store that can fail does then.
#[derive(Debug)]
pub(super) struct Instead {
    pub choice: OnStoreFailure,
    pub instances: u64,
    /// The shares of the policy's limits that one instance admits by itself, from where the store was last
    /// seen.
    pub shares: Policy,
    /// The same shares, of what was admitted in the store's place alone: a store that comes and goes knows
    /// nothing of that, and would hand out each share again and again.
    pub own: Policy,
}

impl Limiter {
    /// Asks a store of this machine, and decides in its place when it fails, which it seldom does: nothing of
    /// what it says is kept for that day.
    #[inline]
    pub(super) fn decide_or_instead<T>(
        &self,
        (key, cost): (&[u8], u64),
        mode: Mode,
        time: Time,
        answer: impl FnOnce(BareDecision) -> T,
    ) -> Result<T> {
        let Inner { counters, origin, .. } = &*self.inner;
        let mut answer = Some(answer);
        let decided = self.ask(key, cost, mode, time, |verdict| {
            if mode == Mode::Acquire {
                counters.count(self.ended(&verdict, cost));
            }
            let bare = BareDecision::new(cost, mode, verdict, *origin, By::Store);
            answer.take().map(|answer| answer(bare))
        });
        match (decided, answer) {
            (Ok(Some(told)), _) => Ok(told),
            (Err(error), Some(answer)) => self.instead_counted(&error, (key, cost), mode, time).map(answer),
            (Ok(None), _) | (Err(_), None) => Err(Error::internal("a decision that was told twice")),
        }
    }

    /// What is decided in the place of a store that failed with `error`, counted.
    #[cold]
    pub(super) fn instead_counted(
        &self,
        error: &Error,
        (key, cost): (&[u8], u64),
        mode: Mode,
        time: Time,
    ) -> Result<BareDecision> {
        self.or_instead(Err(error.clone()), (key, cost), mode, time)
    }

    /// Asks a store elsewhere, and decides in its place when it fails.
    pub(super) fn decide_elsewhere(
        &self,
        (key, cost): (&[u8], u64),
        mode: Mode,
        time: Time,
    ) -> Result<BareDecision> {
        let request = self.request(key, cost)?;
        let decide = |verdict: Verdict<'_>| self.by_store(&request, mode, time, verdict);
        let decided = self.inner.store.decide_request(&request, mode, time, decide);
        self.or_instead(decided, (key, cost), mode, time)
    }

    /// What a store elsewhere has decided later, or what is decided in its place.
    #[cfg(feature = "redis")]
    pub(crate) fn decided_elsewhere(
        &self,
        outcome: Result<crate::store::charge::Outcome>,
        (key, cost): (&[u8], u64),
        mode: Mode,
        time: Time,
    ) -> Result<BareDecision> {
        let request = Request { buckets: self.inner.policy.buckets(), key, cost };
        let decided = outcome.map(|outcome| self.by_store(&request, mode, time, outcome.verdict()));
        self.or_instead(decided, (key, cost), mode, time)
    }

    /// The decision that is a store's verdict.
    pub(super) fn by_store(
        &self,
        request: &Request<'_>,
        mode: Mode,
        time: Time,
        verdict: Verdict<'_>,
    ) -> BareDecision {
        self.saw(request, &verdict, time);
        BareDecision::new(request.cost, mode, verdict, self.inner.origin, By::Store)
    }

    /// What a store decided, else what is decided in its place; counted.
    fn or_instead(
        &self,
        decided: Result<BareDecision>,
        (key, cost): (&[u8], u64),
        mode: Mode,
        time: Time,
    ) -> Result<BareDecision> {
        let decided = decided.or_else(|error| self.instead_of_store(error, (key, cost), mode, time));
        if mode == Mode::Acquire {
            self.count(&decided);
        }
        decided
    }

    /// Decides in the place of a store that failed with `error`; the error itself where nobody is to.
    #[cold]
    pub(super) fn instead_of_store(
        &self,
        error: Error,
        (key, cost): (&[u8], u64),
        mode: Mode,
        time: Time,
    ) -> Result<BareDecision> {
        let Inner { store, instead, is_elsewhere, .. } = &*self.inner;
        // A store of this machine that is full was told to refuse.
        let was_told = !is_elsewhere && error.kind() == ErrorKind::StoreFull;
        let is_failure = OnStoreFailure::is_failure(error.kind()) && !was_told;
        let (Some(instead), Some(stand_in), true) = (instead, store.stand_in(time), is_failure) else {
            return Err(error);
        };
        match instead.choice {
            OnStoreFailure::Raise => Err(error),
            OnStoreFailure::Local => self.locally(&stand_in, instead, (key, cost), mode),
            OnStoreFailure::Open => Ok(self.by_rule(true, stand_in.now(), 0, cost, mode)),
            OnStoreFailure::Closed => {
                Ok(self.by_rule(false, stand_in.now(), store.known_after_us().max(1), cost, mode))
            }
        }
    }

    /// What a store gave back, or charged later: nothing where it failed and nobody is to be troubled.
    pub(super) fn or_nothing<T: Default>(&self, done: Result<T>) -> Result<T> {
        match (&self.inner.instead, done) {
            (Some(Instead { choice, .. }), Err(error))
                if *choice != OnStoreFailure::Raise && OnStoreFailure::is_failure(error.kind()) =>
            {
                Ok(T::default())
            }
            (_, done) => done,
        }
    }

    /// Counts how a decision ended.
    pub(super) fn count(&self, decided: &Result<BareDecision>) {
        let counters = &self.inner.counters;
        match decided {
            Ok(bare) => {
                let told = self.tell(bare);
                counters.count(told.ended());
                if told.degraded() {
                    counters.count(Ended::Degraded);
                }
            }
            Err(_) => counters.count(Ended::Error),
        }
    }

    /// Keeps what the store was seen to say, so that the share goes on from there.
    fn saw(&self, request: &Request<'_>, verdict: &Verdict<'_>, time: Time) {
        let Inner { store, instead, is_elsewhere: true, .. } = &*self.inner else { return };
        let Some(Instead { choice: OnStoreFailure::Local, instances, shares, .. }) = instead else { return };
        let Some(stand_in) = store.stand_in(time) else { return };
        if let [Seen::Blocked(end)] = *verdict.seen {
            return self.saw_block(request.key, Some(end.saturating_sub(verdict.now.steady)), time);
        }
        self.saw_block(request.key, None, time);
        if request.buckets.len() == verdict.seen.len() {
            stand_in.memory.put(shares.buckets(), request.key, verdict.seen, *instances, stand_in.time);
        }
    }

    /// Keeps that a key was blocked for so long, or is not blocked any more.
    pub(super) fn saw_block(&self, key: &[u8], for_us: Option<u64>, time: Time) {
        if let Some(Instead { choice: OnStoreFailure::Local, .. }) = &self.inner.instead
            && let Some(StandIn { memory, time }) = self.inner.store.stand_in(time)
        {
            match for_us {
                Some(for_us) => memory.block(key, for_us, time),
                None => memory.unblock(key, time),
            }
        }
    }

    /// Forgets what this process has seen and admitted of a key.
    pub(super) fn forget_here(&self, key: &[u8], time: Time) {
        if let Some(Instead { choice: OnStoreFailure::Local, shares, own, .. }) = &self.inner.instead
            && let Some(stand_in) = self.inner.store.stand_in(time)
        {
            for policy in [shares, own] {
                stand_in.memory.reset(&policy.group(key, 0).charges, stand_in.time);
            }
        }
    }

    fn locally(
        &self,
        stand_in: &StandIn<'_>,
        Instead { shares, own, .. }: &Instead,
        (key, cost): (&[u8], u64),
        mode: Mode,
    ) -> Result<BareDecision> {
        let never = self.inner.policy.limits().iter().any(|limit| limit.never_admits(cost));
        let (by, mode_here) = if never { (By::LocalNever, Mode::Peek) } else { (By::Local, mode) };
        let cost_of = |share: &Bucket| if never { cost } else { cost.min(share.limit().capacity()) };
        let both = shares.buckets().iter().chain(own.buckets());
        let charges = both.map(|bucket| Charge { bucket, key, cost: cost_of(bucket) }).collect();
        let outcome = stand_in.memory.decide_group(&Group { charges }, mode_here, stand_in.time)?;
        if let [Seen::Blocked(_)] = *outcome.seen {
            return Ok(BareDecision::new(cost, mode, outcome.verdict(), self.inner.origin, By::Local));
        }
        let (of_shares, of_own) = outcome.seen.split_at(shares.buckets().len().min(outcome.seen.len()));
        let stricter = |((share, &one), &other): ((&Bucket, &Seen), &Seen)| {
            let (algorithm, cost) = (share.algorithm(), cost_of(share));
            let strict = |seen: &Seen| {
                let wait = if outcome.admitted { 0 } else { algorithm.retry_after(seen, outcome.now, cost) };
                (wait, u64::MAX - algorithm.measure(seen, outcome.now).remaining)
            };
            if strict(&other) > strict(&one) { other } else { one }
        };
        let seen: SmallVec<[Seen; 4]> =
            shares.buckets().iter().zip(of_shares).zip(of_own).map(stricter).collect();
        let verdict = Verdict::new(outcome.admitted && !never, outcome.now, &seen);
        Ok(BareDecision::new(cost, mode, verdict, self.inner.origin, by))
    }

    /// The answer to everybody, which says nothing of what is left.
    fn by_rule(&self, admitted: bool, now: Now, wait: u64, cost: u64, mode: Mode) -> BareDecision {
        let policy = &self.inner.policy;
        let end = now.steady + wait;
        let seen = policy.limits().iter().map(|limit| {
            if admitted {
                return limit.algorithm().nothing(now);
            }
            let used = u32::try_from(limit.capacity()).unwrap_or(u32::MAX);
            Seen::Tally(Tally { used, next_end: end, last_end: end, needed_end: end })
        });
        let seen: SmallVec<[Seen; 4]> = seen.collect();
        let verdict = Verdict::new(admitted, now, &seen);
        BareDecision::new(cost, mode, verdict, self.inner.origin, By::Rule)
    }
}
