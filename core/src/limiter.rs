//! A limiter: a policy on a store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::algorithm::MAX_SPAN_US;
use crate::clock::{Clock, Time};
use crate::decision::Decision;
use crate::failure::OnStoreFailure;
use crate::policy::Policy;
use crate::receipt::Receipt;
use crate::stats::{Counters, Ended, Stats};
use crate::store::charge::{Charge, Group, Mode, Outcome};
use crate::store::{Given, Refund, Store};
use crate::wait::{Step, Waiter};
use crate::{Error, ErrorKind, Result, duration, key};

/// A policy on a store; clones share it, and threads may.
///
/// Two limiters share a bucket when their store, the limit's name (or numbers) and the key are the
/// same. Keys are 1 to 65 536 bytes, any bytes; a cost is an integer from 0 to 2^53, and 0 asks
/// without taking.
#[derive(Clone, Debug)]
pub struct Limiter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    policy: Policy,
    store: Store,
    clock: Clock,
    counters: Counters,
    closing: Closing,
}

/// Builds a [`Limiter`]; see [`Limiter::builder`].
#[derive(Debug)]
pub struct LimiterBuilder {
    policy: Policy,
    store: Store,
    clock: Clock,
}

impl Limiter {
    /// A builder for a limiter under `policy`, on a `memory:` store of its own until told otherwise.
    pub fn builder(policy: impl Into<Policy>) -> LimiterBuilder {
        LimiterBuilder { policy: policy.into(), store: Store::default(), clock: Clock::default() }
    }

    /// Takes `cost` for `key` when every limit admits it, else nothing.
    ///
    /// # Errors
    /// `invalid_argument` for a key or cost outside the domain, `closed`, and the store's errors.
    pub fn acquire(&self, key: impl AsRef<[u8]>, cost: u64) -> Result<Decision> {
        self.acquire_at(key, cost, self.read_clock()?)
    }

    /// As [`acquire`](Self::acquire), but answers yes or no only: the fastest path.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn allow(&self, key: impl AsRef<[u8]>, cost: u64) -> Result<bool> {
        self.allow_at(key, cost, self.read_clock()?)
    }

    /// Whether `cost` would be admitted, and what is left before taking it; writes nothing.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn peek(&self, key: impl AsRef<[u8]>, cost: u64) -> Result<Decision> {
        self.peek_at(key, cost, self.read_clock()?)
    }

    /// Forgets what the key has used, under every limit of the policy; an unknown key is fine.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn reset(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.reset_at(key, self.read_clock()?)
    }

    /// Reads the limiter's clock once, for the `_at` forms: a host language does it where its
    /// clock may be called, and decides elsewhere.
    ///
    /// # Errors
    /// `invalid_argument` for a time outside the domain, and what a host clock returns.
    pub fn read_clock(&self) -> Result<Time> {
        self.inner.clock.read()
    }

    /// Acquires for several keys in one step: each key with its cost is all or nothing for itself, in
    /// their order; the same key twice counts twice.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); the message names the item's index. Then nothing stays charged.
    pub fn acquire_many<K: AsRef<[u8]>>(&self, items: &[(K, u64)]) -> Result<Vec<Decision>> {
        self.acquire_many_at(items, self.read_clock()?)
    }

    /// Waits until `cost` is admitted and due, or the timeout has passed: without one for ever.
    ///
    /// It never fails for a refusal: the last decision is returned. At once when no wait helps, and when
    /// `retry_after` lies beyond the timeout. Else it sleeps `retry_after` (and an admitted leaky
    /// request's `delay`, where that is within the timeout), and asks again; no order among waiters is
    /// promised. On a manual clock it advances the clock and takes no time.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), and `closed` when it is closed meanwhile.
    pub fn wait(&self, key: impl AsRef<[u8]>, cost: u64, timeout: Option<Duration>) -> Result<Decision> {
        let mut waiter = self.waiter(key, cost, timeout);
        loop {
            match waiter.step()? {
                Step::Done(decision) => return Ok(decision),
                Step::Sleep(wait) => self.inner.closing.sleep(wait)?,
            }
        }
    }

    /// [`wait`](Self::wait) as steps, for those who sleep in a way of their own.
    pub fn waiter(&self, key: impl AsRef<[u8]>, cost: u64, timeout: Option<Duration>) -> Waiter {
        Waiter::new(self, key.as_ref(), cost, timeout)
    }

    /// Sleeps, unless the limiter is closed: then it is the error `closed`, at once.
    ///
    /// # Errors
    /// `closed`.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        self.inner.closing.sleep(time)
    }

    /// Gives back what an admitted decision of this limiter took, never above full; leases end with it.
    /// Returns the units given back, of several limits the most. It works once: 0 for a decision that
    /// was refused, settled before, or has expired. Of a leaky bucket only the last in the queue may
    /// leave, before its turn.
    ///
    /// # Errors
    /// `closed`, and the store's errors.
    pub fn refund(&self, decision: &Decision) -> Result<u64> {
        let time = self.read_clock()?;
        self.check_open()?;
        match decision.settle() {
            Some(receipt) => self.refund_at(decision.key(), receipt, time),
            None => Ok(0),
        }
    }

    /// [`refund`](Self::refund) of what a receipt for `key` says, at a time that was read before. That it
    /// works once is the caller's to see to.
    ///
    /// # Errors
    /// As [`refund`](Self::refund).
    pub fn refund_at(&self, key: impl AsRef<[u8]>, receipt: Receipt, time: Time) -> Result<u64> {
        let given = self.give_back(key.as_ref(), receipt, receipt.cost, |_| true, time)?;
        Ok(given.into_iter().max().unwrap_or(0))
    }

    /// Settles an admitted decision at a cost that is known only afterwards: less than it took is given
    /// back as by [`refund`](Self::refund), more is charged now, whatever is left, at most to empty: debt
    /// beyond that is forgiven. It works once; leases go on. Nothing happens for a decision that was
    /// refused or settled before.
    ///
    /// # Errors
    /// `invalid_argument` for a cost outside 0 to 2^53, `closed`, and the store's errors.
    pub fn commit(&self, decision: &Decision, actual: u64) -> Result<()> {
        let time = self.read_clock()?;
        self.check_open()?;
        key::check_cost(actual)?;
        match decision.settle() {
            Some(receipt) => self.commit_at(decision.key(), receipt, actual, time),
            None => Ok(()),
        }
    }

    /// [`commit`](Self::commit) of what a receipt for `key` says, at a time that was read before. That it
    /// works once is the caller's to see to.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_at(&self, key: impl AsRef<[u8]>, receipt: Receipt, actual: u64, time: Time) -> Result<()> {
        self.check_open()?;
        key::check(key.as_ref())?;
        key::check_cost(actual)?;
        let is_rate = |charge: &Charge<'_>| !charge.bucket.limit().is_concurrency();
        if actual <= receipt.cost {
            return self.give_back(key.as_ref(), receipt, receipt.cost - actual, is_rate, time).map(|_| ());
        }
        let mut group = self.inner.policy.group(key.as_ref(), actual - receipt.cost);
        group.charges.retain(|charge| is_rate(charge));
        if group.charges.is_empty() {
            return Ok(());
        }
        let outcomes = self.inner.store.decide(std::slice::from_ref(&group), Mode::Charge, time)?;
        outcomes.into_iter().try_for_each(|outcome| outcome.map(|_| ()))
    }

    /// Ends the leases that an admitted decision of this limiter took (`concurrency`); what its other
    /// limits took stays charged. Returns how many leases still counted: 0 for a decision that was
    /// refused, took no lease, was released before, or whose leases have expired.
    ///
    /// # Errors
    /// `closed`, and the store's errors.
    pub fn release(&self, decision: &Decision) -> Result<u64> {
        match decision.receipt() {
            Some(receipt) => self.release_at(decision.key(), receipt, self.read_clock()?),
            None => self.check_open().map(|()| 0),
        }
    }

    /// [`release`](Self::release) of what a receipt for `key` says, at a time that was read before.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn release_at(&self, key: impl AsRef<[u8]>, receipt: Receipt, time: Time) -> Result<u64> {
        if receipt.lease.is_none() {
            return self.check_open().map(|()| 0);
        }
        let leases = |charge: &Charge<'_>| charge.bucket.limit().is_concurrency();
        let given = self.give_back(key.as_ref(), receipt, receipt.cost, leases, time)?;
        Ok(given.into_iter().filter(|&units| units > 0).count() as u64)
    }

    /// Refuses the key for so long, under any policy on this store and prefix, also at cost 0. A later
    /// block replaces it; [`unblock`](Self::unblock) and [`reset`](Self::reset) lift it.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); a duration of less than a microsecond or more than 2^50.
    pub fn block(&self, key: impl AsRef<[u8]>, duration: Duration) -> Result<()> {
        self.block_at(key, duration, self.read_clock()?)
    }

    /// [`block`](Self::block) at a time that was read before.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn block_at(&self, key: impl AsRef<[u8]>, duration: Duration, time: Time) -> Result<()> {
        self.check_open()?;
        key::check(key.as_ref())?;
        let for_us = duration::to_micros("block", duration)?;
        if for_us > MAX_SPAN_US {
            return Err(Error::argument(format!(
                "a block of {duration:?}: at most 2^50 microseconds (35 years)"
            )));
        }
        self.inner.store.block(key.as_ref(), for_us, time)
    }

    /// Lifts a block; none is fine.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn unblock(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.unblock_at(key, self.read_clock()?)
    }

    /// [`unblock`](Self::unblock) in the key space of a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn unblock_at(&self, key: impl AsRef<[u8]>, time: Time) -> Result<()> {
        self.check_open()?;
        key::check(key.as_ref())?;
        self.inner.store.unblock(key.as_ref(), time)
    }

    /// How often it answered what, since it was made.
    pub fn stats(&self) -> Stats {
        self.inner.counters.stats(self.inner.store.contents())
    }

    /// [`acquire`](Self::acquire) at a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn acquire_at(&self, key: impl AsRef<[u8]>, cost: u64, time: Time) -> Result<Decision> {
        let decided = self.decide(key.as_ref(), cost, time, Mode::Acquire, Decision::new);
        self.inner.counters.counted(decided, Decision::ended)
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
        let groups: Vec<Group<'_>> =
            items.iter().map(|(key, cost)| self.inner.policy.group(key.as_ref(), *cost)).collect();
        let outcomes = self.inner.store.decide(&groups, Mode::Acquire, time)?;
        let decide = |(group, outcome): (&Group<'_>, Result<Outcome>)| {
            let decided = outcome.map(|outcome| Decision::new(group, Mode::Acquire, &outcome));
            self.inner.counters.counted(decided, Decision::ended)
        };
        let mut decided: Vec<Result<Decision>> = groups.iter().zip(outcomes).map(decide).collect();
        match decided.iter().position(Result::is_err) {
            None => decided.into_iter().collect(),
            Some(index) => {
                let failed = decided.swap_remove(index).err();
                for decision in decided.iter().flatten() {
                    if let Some(receipt) = decision.settle() {
                        self.refund_at(decision.key(), receipt, time)?;
                    }
                }
                Err(failed
                    .map_or_else(|| Error::new(ErrorKind::Internal, "no error"), |error| named(index, error)))
            }
        }
    }

    /// [`allow`](Self::allow) at a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn allow_at(&self, key: impl AsRef<[u8]>, cost: u64, time: Time) -> Result<bool> {
        let ended = |group: &Group<'_>, _, outcome: &Outcome| match outcome {
            Outcome { admitted: true, .. } => Ended::Allowed,
            Outcome { blocked: Some(_), .. } => Ended::Blocked,
            _ if group.charges.iter().any(Charge::never_admitted) => Ended::Never,
            _ => Ended::Refused,
        };
        let decided = self.decide(key.as_ref(), cost, time, Mode::Acquire, ended);
        let ended = self.inner.counters.counted(decided, |&ended| ended)?;
        Ok(matches!(ended, Ended::Allowed))
    }

    /// [`peek`](Self::peek) at a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn peek_at(&self, key: impl AsRef<[u8]>, cost: u64, time: Time) -> Result<Decision> {
        self.decide(key.as_ref(), cost, time, Mode::Peek, Decision::new)
    }

    /// [`reset`](Self::reset) in the key space of a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn reset_at(&self, key: impl AsRef<[u8]>, time: Time) -> Result<()> {
        self.check_open()?;
        key::check(key.as_ref())?;
        self.inner.store.reset(&self.inner.policy.group(key.as_ref(), 0).charges, time)
    }

    /// Closes it: every later operation, of its clones too, is the error `closed`, and so it is for those
    /// who wait inside. Twice is fine. The store lives on for other limiters.
    pub fn close(&self) {
        self.inner.closing.close();
    }

    /// Its clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Its policy.
    pub fn policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// Its store.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    #[inline]
    fn decide<T>(
        &self,
        key: &[u8],
        cost: u64,
        time: Time,
        mode: Mode,
        answer: impl FnOnce(&Group<'_>, Mode, &Outcome) -> T,
    ) -> Result<T> {
        self.check_open()?;
        key::check(key)?;
        key::check_cost(cost)?;
        let group = self.inner.policy.group(key, cost);
        let mut outcomes = self.inner.store.decide(std::slice::from_ref(&group), mode, time)?;
        match outcomes.pop() {
            Some(outcome) => Ok(answer(&group, mode, &outcome?)),
            None => Err(Error::new(ErrorKind::Internal, "the store gave no answer")),
        }
    }

    fn give_back(
        &self,
        key: &[u8],
        receipt: Receipt,
        units: u64,
        of: impl Fn(&Charge<'_>) -> bool,
        time: Time,
    ) -> Result<Given> {
        self.check_open()?;
        key::check(key)?;
        let mut group = self.inner.policy.group(key, units);
        group.charges.retain(|charge| of(charge));
        if units == 0 {
            return Ok(Given::new());
        }
        let given = self.inner.store.refund(&Refund { charges: &group.charges, receipt }, time)?;
        self.inner.counters.refunded(given.iter().copied().max().unwrap_or(0));
        Ok(given)
    }

    fn check_open(&self) -> Result<()> {
        self.inner.closing.check_open()
    }
}

/// Whether a limiter is closed, and who waits meanwhile.
#[derive(Debug, Default)]
struct Closing {
    closed: AtomicBool,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Closing {
    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        drop(self.lock.lock());
        self.woken.notify_all();
    }

    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the limiter is closed"));
        }
        Ok(())
    }

    fn sleep(&self, time: Duration) -> Result<()> {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let open = |_: &mut ()| !self.closed.load(Ordering::Acquire);
        drop(self.woken.wait_timeout_while(guard, time, open));
        self.check_open()
    }
}

impl LimiterBuilder {
    /// Keeps the state in `store`.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        self.store = store;
        self
    }

    /// Takes the time from `clock` in place of the store's own.
    #[must_use]
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// Says what happens when the store fails.
    #[must_use]
    pub fn on_store_failure(self, choice: OnStoreFailure) -> Self {
        match choice {
            OnStoreFailure::Raise => self,
        }
    }

    /// The limiter. Nothing is started and no socket is opened.
    ///
    /// # Errors
    /// None today; options that contradict each other will be refused here.
    pub fn build(self) -> Result<Limiter> {
        let Self { policy, store, clock } = self;
        Ok(Limiter {
            inner: Arc::new(Inner {
                policy,
                store,
                clock,
                counters: Counters::default(),
                closing: Closing::default(),
            }),
        })
    }
}
