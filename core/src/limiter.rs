//! A limiter: a policy on a store.

mod block;
mod builder;
mod closing;
mod instead;
mod many;
mod settle;

use std::sync::{Arc, OnceLock};

use crate::algorithm::Seen;
use crate::clock::{Clock, Time};
use crate::decision::Decision;
use crate::health::{Health, News};
use crate::policy::Policy;
use crate::stats::{Counters, Ended, Stats};
use crate::store::Store;
use crate::store::charge::{Mode, Request, Verdict};
use crate::told::{BareDecision, By, Told};
use crate::{Result, key, lane};
pub use builder::LimiterBuilder;
use closing::Closing;
use instead::Instead;

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
    /// The policy for the decisions of each lane.
    apart: [OnceLock<Policy>; lane::OWN],
    store: Store,
    clock: Clock,
    counters: Counters,
    closing: Closing,
    /// Whether its store is asked over a network.
    is_elsewhere: bool,
    /// What happens when the store fails; none where it cannot.
    instead: Option<Instead>,
    /// What its receipts bear: the same for equal limits on the same store.
    origin: u32,
}

impl Limiter {
    /// A builder for a limiter under `policy`, on a `memory:` store of its own until told otherwise.
    pub fn builder(policy: impl Into<Policy>) -> LimiterBuilder {
        LimiterBuilder::new(policy.into())
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

    /// How often it answered what, since it was made.
    pub fn stats(&self) -> Stats {
        self.inner.counters.stats(self.inner.store.contents())
    }

    /// [`acquire`](Self::acquire) at a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn acquire_at(&self, key: impl AsRef<[u8]>, cost: u64, time: Time) -> Result<Decision> {
        self.decide(key.as_ref(), cost, time, Mode::Acquire)
    }

    /// [`allow`](Self::allow) at a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn allow_at(&self, key: impl AsRef<[u8]>, cost: u64, time: Time) -> Result<bool> {
        if self.inner.is_elsewhere {
            return self.decide_bare(key.as_ref(), cost, time, Mode::Acquire, |bare| bare.allowed());
        }
        let ended = self.ask(key.as_ref(), cost, Mode::Acquire, time, |verdict| self.ended(&verdict, cost));
        if let (Err(error), true) = (&ended, self.inner.instead.is_some()) {
            let decided = self.instead_counted(error, (key.as_ref(), cost), Mode::Acquire, time);
            return decided.map(|bare| bare.allowed());
        }
        let ended = self.inner.counters.counted(ended, |&ended| ended)?;
        Ok(matches!(ended, Ended::Allowed))
    }

    /// [`peek`](Self::peek) at a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn peek_at(&self, key: impl AsRef<[u8]>, cost: u64, time: Time) -> Result<Decision> {
        self.decide(key.as_ref(), cost, time, Mode::Peek)
    }

    /// [`acquire_at`](Self::acquire_at) for a binding, whose language keeps the key and the limiter: it answers
    /// what `keep` makes of the decision, where the decision was made, so that nothing is moved twice.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    #[inline]
    pub fn acquire_bare_at<T>(
        &self,
        key: impl AsRef<[u8]>,
        cost: u64,
        time: Time,
        keep: impl FnOnce(BareDecision) -> T,
    ) -> Result<T> {
        self.decide_bare(key.as_ref(), cost, time, Mode::Acquire, keep)
    }

    /// [`peek_at`](Self::peek_at) for a binding, as [`acquire_bare_at`](Self::acquire_bare_at).
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    #[inline]
    pub fn peek_bare_at<T>(
        &self,
        key: impl AsRef<[u8]>,
        cost: u64,
        time: Time,
        keep: impl FnOnce(BareDecision) -> T,
    ) -> Result<T> {
        self.decide_bare(key.as_ref(), cost, time, Mode::Peek, keep)
    }

    /// What a bare decision of this limiter tells. (One of a limiter with fewer limits may tell nonsense.)
    #[inline]
    pub fn tell<'a>(&'a self, bare: &'a BareDecision) -> Told<'a> {
        bare.told(self.policy_of(bare))
    }

    /// A bare decision of this limiter about `key`, made whole.
    pub fn complete(&self, key: impl AsRef<[u8]>, bare: BareDecision) -> Decision {
        let policy = if bare.is_by_share() { self.policy_of(&bare).clone() } else { self.policy_apart() };
        Decision::new(policy, key.as_ref(), bare)
    }

    /// [`reset`](Self::reset) in the key space of a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn reset_at(&self, key: impl AsRef<[u8]>, time: Time) -> Result<()> {
        self.check_open()?;
        key::check(key.as_ref())?;
        self.inner.store.reset(&self.inner.policy.group(key.as_ref(), 0).charges, time)?;
        self.forget_here(key.as_ref(), time);
        Ok(())
    }

    /// How its store is, asked now: where that is elsewhere, in a few round trips.
    ///
    /// # Errors
    /// `closed` only: a store that is away is what it tells.
    pub fn health(&self) -> Result<Health> {
        self.check_open()?;
        Ok(self.inner.store.health())
    }

    /// What an operator should know and was not told yet, of all limiters on the same store: that it is
    /// not asked any more and why, that it decides again. A binding logs it.
    pub fn take_news(&self) -> Vec<News> {
        std::iter::from_fn(|| self.next_news()).collect()
    }

    /// The oldest line of [`take_news`](Self::take_news), for a binding that takes one at a time.
    pub fn next_news(&self) -> Option<News> {
        self.inner.store.next_news()
    }

    /// Closes it: every later operation, of its clones too, is the error `closed`, and so it is for those
    /// who wait inside. Twice is fine. The store lives on for other limiters.
    pub fn close(&self) {
        self.inner.closing.close();
    }

    pub(crate) fn closing(&self) -> &Closing {
        &self.inner.closing
    }

    /// Its clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Its policy.
    pub fn policy(&self) -> &Policy {
        &self.inner.policy
    }

    /// What of its policy this instance admits by itself while a store elsewhere fails; for a store in this
    /// process the policy.
    pub fn shares(&self) -> &Policy {
        self.inner.instead.as_ref().map_or(&self.inner.policy, |instead| &instead.shares)
    }

    /// Its store.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    #[inline]
    fn decide(&self, key: &[u8], cost: u64, time: Time, mode: Mode) -> Result<Decision> {
        self.decide_bare(key, cost, time, mode, |bare| self.complete(key, bare))
    }

    /// Decides, and answers what `answer` makes of the decision.
    #[inline]
    fn decide_bare<T>(
        &self,
        key: &[u8],
        cost: u64,
        time: Time,
        mode: Mode,
        answer: impl FnOnce(BareDecision) -> T,
    ) -> Result<T> {
        let Inner { counters, origin, instead, is_elsewhere, .. } = &*self.inner;
        if *is_elsewhere {
            return self.decide_elsewhere((key, cost), mode, time).map(answer);
        }
        if instead.is_some() {
            return self.decide_or_instead((key, cost), mode, time, answer);
        }
        let decided = self.ask(key, cost, mode, time, |verdict| {
            if mode == Mode::Acquire {
                counters.count(self.ended(&verdict, cost));
            }
            answer(BareDecision::new(cost, mode, verdict, *origin, By::Store))
        });
        if decided.is_err() && mode == Mode::Acquire {
            counters.count(Ended::Error);
        }
        decided
    }

    /// The policy that a decision was made by: that of this instance's shares, where it decided itself.
    #[inline]
    fn policy_of(&self, bare: &BareDecision) -> &Policy {
        match &self.inner.instead {
            Some(instead) if bare.is_by_share() => &instead.shares,
            _ => &self.inner.policy,
        }
    }

    /// The policy for a decision of this thread.
    #[inline]
    fn policy_apart(&self) -> Policy {
        let Inner { policy, apart, .. } = &*self.inner;
        let own = apart.get(lane::lane().index).map(|own| own.get_or_init(|| policy.apart()));
        own.unwrap_or(policy).clone()
    }

    /// Asks the store, and answers what `answer` makes of the verdict.
    #[inline]
    fn ask<T>(
        &self,
        key: &[u8],
        cost: u64,
        mode: Mode,
        time: Time,
        answer: impl FnOnce(Verdict<'_>) -> T,
    ) -> Result<T> {
        let request = self.request(key, cost)?;
        self.inner.store.decide_request(&request, mode, time, answer)
    }

    /// What is asked of the store, where it can be.
    #[inline]
    pub(crate) fn request<'a>(&'a self, key: &'a [u8], cost: u64) -> Result<Request<'a>> {
        self.check_open()?;
        key::check(key)?;
        key::check_cost(cost)?;
        Ok(Request { buckets: self.inner.policy.buckets(), key, cost })
    }

    /// How a request ended.
    #[inline]
    fn ended(&self, verdict: &Verdict<'_>, cost: u64) -> Ended {
        if verdict.admitted {
            Ended::Allowed
        } else if matches!(verdict.seen, [Seen::Blocked(_)]) {
            Ended::Blocked
        } else if self.inner.policy.limits().iter().any(|limit| limit.never_admits(cost)) {
            Ended::Never
        } else {
            Ended::Refused
        }
    }

    #[inline]
    fn check_open(&self) -> Result<()> {
        self.inner.closing.check_open()
    }
}
