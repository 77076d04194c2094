//! Several keys in one step.

use super::Limiter;
use crate::clock::Time;
use crate::decision::Decision;
use crate::stats::Ended;
use crate::store::charge::{Mode, Request, Verdict};
use crate::told::BareDecision;
use crate::{Error, ErrorKind, Result, key};

impl Limiter {
    /// Acquires for several keys in one step: each key with its cost is all or nothing for itself, in
    /// their order; the same key twice counts twice.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); the message names the item's index. Then nothing stays charged.
    pub fn acquire_many<K: AsRef<[u8]>>(&self, items: &[(K, u64)]) -> Result<Vec<Decision>> {
        self.acquire_many_at(items, self.read_clock()?)
    }

    /// [`acquire_many`](Self::acquire_many) at a time that was read before.
    ///
    /// # Errors
    /// As [`acquire_many`](Self::acquire_many).
    pub fn acquire_many_at<K: AsRef<[u8]>>(&self, items: &[(K, u64)], time: Time) -> Result<Vec<Decision>> {
        self.check_open()?;
        let named = |index: usize, error: Error| Error::new(error.kind(), format!("item {index}: {error}"));
        for (index, (key, cost)) in items.iter().enumerate() {
            key::check(key.as_ref())
                .and_then(|()| key::check_cost(*cost))
                .map_err(|error| named(index, error))?;
        }
        let buckets = self.inner.policy.buckets();
        let requests = items.iter().map(|(key, cost)| Request { buckets, key: key.as_ref(), cost: *cost });
        let requests: Vec<Request<'_>> = requests.collect();
        let decide = |request: &Request<'_>, verdict: Verdict<'_>| {
            let Request { key, cost, .. } = *request;
            let policy = &self.inner.policy;
            let bare = BareDecision::new(policy, cost, Mode::Acquire, verdict, self.inner.origin);
            Decision::new(self.policy_apart(), key, bare)
        };
        let mut decided = self.inner.store.decide_requests(&requests, Mode::Acquire, time, decide)?;
        let Some(index) = decided.iter().position(Result::is_err) else {
            let decisions = decided.into_iter().collect::<Result<Vec<_>>>()?;
            decisions.iter().for_each(|decision| self.inner.counters.count(decision.told().ended()));
            return Ok(decisions);
        };
        self.inner.counters.count(Ended::Error);
        let failed = decided.swap_remove(index).err();
        // The last first, as a queue is left.
        for decision in decided.iter().rev().flatten() {
            self.undo(decision, time)?;
        }
        Err(failed.map_or_else(|| Error::new(ErrorKind::Internal, "no error"), |error| named(index, error)))
    }
}
