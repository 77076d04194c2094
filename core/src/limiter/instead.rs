//! Deciding in the store's place while it does not.

use smallvec::SmallVec;

use super::{Inner, Limiter};
use crate::algorithm::{Seen, Tally};
use crate::clock::{Now, Time};
use crate::failure::OnStoreFailure;
use crate::policy::Policy;
use crate::stats::Ended;
use crate::store::StandIn;
use crate::store::charge::{Charge, Group, Mode, Outcome, Request, Verdict};
use crate::told::{BareDecision, By};
use crate::{Error, Result};

/// What a limiter on a store elsewhere does when that fails.
#[derive(Debug)]
pub(super) struct Instead {
    pub choice: OnStoreFailure,
    pub instances: u64,
    /// The shares of the policy's limits that one instance admits by itself.
    pub shares: Policy,
}

impl Limiter {
    /// Asks a store elsewhere, and decides in its place when it fails.
    pub(super) fn decide_elsewhere(
        &self,
        instead: &Instead,
        (key, cost): (&[u8], u64),
        mode: Mode,
        time: Time,
    ) -> Result<BareDecision> {
        let request = self.request(key, cost)?;
        let Inner { origin, store, .. } = &*self.inner;
        let asked = store.decide_request(&request, mode, time, |verdict| {
            self.saw(instead, &request, &verdict, time);
            BareDecision::new(cost, mode, verdict, *origin, By::Store)
        });
        let decided = asked.or_else(|error| self.instead_of_store(instead, error, (key, cost), mode, time));
        if mode == Mode::Acquire {
            self.count(&decided);
        }
        decided
    }

    /// What a store elsewhere has decided, or what is decided in its place.
    pub(crate) fn decided_elsewhere(
        &self,
        outcome: Result<Outcome>,
        (key, cost): (&[u8], u64),
        mode: Mode,
        time: Time,
    ) -> Result<BareDecision> {
        let Inner { origin, instead, policy, .. } = &*self.inner;
        let decided = match (outcome, instead) {
            (Ok(outcome), _) => {
                let verdict = outcome.verdict();
                if let Some(instead) = instead {
                    let request = Request { buckets: policy.buckets(), key, cost };
                    self.saw(instead, &request, &verdict, time);
                }
                Ok(BareDecision::new(cost, mode, verdict, *origin, By::Store))
            }
            (Err(error), Some(instead)) => self.instead_of_store(instead, error, (key, cost), mode, time),
            (Err(error), None) => Err(error),
        };
        if mode == Mode::Acquire {
            self.count(&decided);
        }
        decided
    }

    /// Decides in the place of a store that failed with `error`; the error itself where nobody is to.
    #[cold]
    pub(super) fn instead_of_store(
        &self,
        Instead { choice, shares, .. }: &Instead,
        error: Error,
        (key, cost): (&[u8], u64),
        mode: Mode,
        time: Time,
    ) -> Result<BareDecision> {
        let stand_in = self.inner.store.stand_in(time);
        let Some(stand_in) = stand_in.filter(|_| OnStoreFailure::is_failure(error.kind())) else {
            return Err(error);
        };
        match choice {
            OnStoreFailure::Raise => Err(error),
            OnStoreFailure::Local => self.locally(&stand_in, shares, (key, cost), mode),
            OnStoreFailure::Open => Ok(self.by_rule(true, stand_in.now(), 0, cost, mode)),
            OnStoreFailure::Closed => {
                Ok(self.by_rule(false, stand_in.now(), stand_in.probe_after_us.max(1), cost, mode))
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
    fn saw(&self, instead: &Instead, request: &Request<'_>, verdict: &Verdict<'_>, time: Time) {
        let Instead { choice: OnStoreFailure::Local, instances, shares } = instead else { return };
        let Some(stand_in) = self.inner.store.stand_in(time) else { return };
        if request.buckets.len() == verdict.seen.len() && !matches!(verdict.seen, [Seen::Blocked(_)]) {
            stand_in.memory.put(shares.buckets(), request.key, verdict.seen, *instances, stand_in.time);
        }
    }

    fn locally(
        &self,
        stand_in: &StandIn<'_>,
        shares: &Policy,
        (key, cost): (&[u8], u64),
        mode: Mode,
    ) -> Result<BareDecision> {
        let never = self.inner.policy.limits().iter().any(|limit| limit.never_admits(cost));
        let (by, mode_here) = if never { (By::LocalNever, Mode::Peek) } else { (By::Local, mode) };
        let charge = |bucket| {
            let share: &crate::store::bucket::Bucket = bucket;
            Charge { bucket, key, cost: if never { cost } else { cost.min(share.limit().capacity()) } }
        };
        let group = Group { charges: shares.buckets().iter().map(charge).collect() };
        let outcome = stand_in.memory.decide_group(&group, mode_here, stand_in.time)?;
        let mut verdict = outcome.verdict();
        verdict.admitted &= !never;
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
