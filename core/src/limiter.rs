//! A limiter: a policy on a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::{Clock, Time};
use crate::decision::Decision;
use crate::failure::OnStoreFailure;
use crate::policy::Policy;
use crate::receipt::Receipt;
use crate::store::Store;
use crate::store::charge::{Group, Mode, Outcome};
use crate::{Error, ErrorKind, Result, key};

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
    closed: AtomicBool,
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

    /// [`acquire`](Self::acquire) at a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn acquire_at(&self, key: impl AsRef<[u8]>, cost: u64, time: Time) -> Result<Decision> {
        self.decide(key.as_ref(), cost, time, Mode::Acquire, Decision::new)
    }

    /// [`allow`](Self::allow) at a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn allow_at(&self, key: impl AsRef<[u8]>, cost: u64, time: Time) -> Result<bool> {
        self.decide(key.as_ref(), cost, time, Mode::Acquire, |_, _, outcome| outcome.admitted)
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
        self.check_open()?;
        key::check(key.as_ref())?;
        if receipt.lease.is_none() {
            return Ok(0);
        }
        let mut group = self.inner.policy.group(key.as_ref(), receipt.cost);
        group.charges.retain(|charge| charge.bucket.limit().is_concurrency());
        self.inner.store.release(&group.charges, receipt.lease, time)
    }

    /// Closes it: every later operation, and every later one of its clones, is the error `closed`.
    /// Twice is fine. The store lives on for other limiters.
    pub fn close(&self) {
        self.inner.closed.store(true, Ordering::Release);
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

    fn check_open(&self) -> Result<()> {
        if self.inner.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the limiter is closed"));
        }
        Ok(())
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
        let closed = AtomicBool::new(false);
        Ok(Limiter { inner: Arc::new(Inner { policy, store, clock, closed }) })
    }
}
