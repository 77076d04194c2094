//! Several keys in one step.

use super::{Inner, Limiter};
use crate::clock::Time;
use crate::decision::Decision;
use crate::stats::Ended;
use crate::store::charge::{Mode, Request, Verdict};
use crate::told::BareDecision;
use crate::{Error, Result, key};

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
        let decided = self.acquire_many_bare_at(items, time)?;
        Ok(items.iter().zip(decided).map(|((key, _), bare)| self.complete(key, bare)).collect())
    }

    /// [`acquire_many_at`](Self::acquire_many_at) for a binding that keeps the keys and the limiter itself.
    ///
    /// # Errors
    /// As [`acquire_many`](Self::acquire_many).
    pub fn acquire_many_bare_at<K: AsRef<[u8]>>(
        &self,
        items: &[(K, u64)],
        time: Time,
    ) -> Result<Vec<BareDecision>> {
        self.check_open()?;
        let named = |index: usize, error: &Error| Error::new(error.kind(), format!("item {index}: {error}"));
        for (index, (key, cost)) in items.iter().enumerate() {
            key::check(key.as_ref())
                .and_then(|()| key::check_cost(*cost))
                .map_err(|error| named(index, &error))?;
        }
        let Inner { policy, counters, store, .. } = &*self.inner;
        let buckets = policy.buckets();
        let requests = items.iter().map(|(key, cost)| Request { buckets, key: key.as_ref(), cost: *cost });
        let requests: Vec<Request<'_>> = requests.collect();
        let decide = |request: &Request<'_>, verdict: Verdict<'_>| {
            self.by_store(request, Mode::Acquire, time, verdict)
        };
        let decided = store.decide_requests(&requests, Mode::Acquire, time, decide);
        let decided = decided.unwrap_or_else(|error| requests.iter().map(|_| Err(error.clone())).collect());
        let decided = requests.iter().zip(decided).map(|(request, one)| {
            one.or_else(|error| {
                self.instead_of_store(error, (request.key, request.cost), Mode::Acquire, time)
            })
        });
        let decided: Vec<Result<BareDecision>> = decided.collect();
        let mut each = decided.iter().enumerate();
        let Some(failed) = each.find_map(|(index, one)| Some(named(index, one.as_ref().err()?))) else {
            decided.iter().for_each(|one| self.count(one));
            return decided.into_iter().collect();
        };
        counters.count(Ended::Error);
        // The last first, as a queue is left.
        for ((key, _), one) in items.iter().zip(&decided).rev() {
            if let Ok(decision) = one {
                self.undo(key.as_ref(), decision, time)?;
            }
        }
        Err(failed)
    }
}
