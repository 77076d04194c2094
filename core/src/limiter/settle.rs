//! What comes after a decision: giving back, settling at another cost, returning leases.

use super::Limiter;
use crate::clock::Time;
use crate::decision::Decision;
use crate::receipt::Receipt;
use crate::store::charge::{Charge, Mode};
use crate::store::{Given, Refund};
use crate::told::BareDecision;
use crate::{Error, Result, key};

impl Limiter {
    /// Gives back what an admitted decision of this limiter took, never above full; leases end with it.
    /// Returns the units given back, of several limits the most. It works once: 0 for a decision that
    /// was refused, settled before, or has expired; again after an error under which the store surely did
    /// [nothing](Error::may_have_happened). Of a leaky bucket only the last in the queue may
    /// leave, before its turn.
    ///
    /// # Errors
    /// `closed`, and the store's errors where those are to be [raised](crate::OnStoreFailure::Raise); else 0.
    pub fn refund(&self, decision: &Decision) -> Result<u64> {
        self.refund_bare_at(decision.key(), decision.bare(), self.read_clock()?)
    }

    /// [`refund`](Self::refund) of a bare decision about `key`, at a time that was read before.
    ///
    /// # Errors
    /// As [`refund`](Self::refund).
    pub fn refund_bare_at(&self, key: impl AsRef<[u8]>, decision: &BareDecision, time: Time) -> Result<u64> {
        match self.settle(decision)? {
            Some(receipt) => self.or_nothing(decision.keep(self.give_units(key.as_ref(), receipt, time))),
            None => Ok(0),
        }
    }

    /// [`refund`](Self::refund) of what a receipt for `key` says, at a time that was read before. That it
    /// works once is the caller's to see to.
    ///
    /// # Errors
    /// As [`refund`](Self::refund).
    pub fn refund_at(&self, key: impl AsRef<[u8]>, receipt: Receipt, time: Time) -> Result<u64> {
        self.or_nothing(self.give_units(key.as_ref(), receipt, time))
    }

    /// Settles an admitted decision at a cost that is known only afterwards: less than it took is given
    /// back as by [`refund`](Self::refund), more is charged now, whatever is left, at most to empty: debt
    /// beyond that is forgiven. It works once; leases go on. Nothing happens for a decision that was
    /// refused or settled before.
    ///
    /// # Errors
    /// `invalid_argument` for a cost outside 0 to 2^53, `closed`, and the store's errors where those are to be
    /// [raised](crate::OnStoreFailure::Raise).
    pub fn commit(&self, decision: &Decision, actual: u64) -> Result<()> {
        self.commit_bare_at(decision.key(), decision.bare(), actual, self.read_clock()?)
    }

    /// [`commit`](Self::commit) of a bare decision about `key`, at a time that was read before.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_bare_at(
        &self,
        key: impl AsRef<[u8]>,
        decision: &BareDecision,
        actual: u64,
        time: Time,
    ) -> Result<()> {
        self.check_open()?;
        key::check_cost(actual)?;
        match self.settle(decision)? {
            Some(receipt) => {
                self.or_nothing(decision.keep(self.settle_at(key.as_ref(), receipt, actual, time)))
            }
            None => Ok(()),
        }
    }

    /// [`commit`](Self::commit) of what a receipt for `key` says, at a time that was read before. That it
    /// works once is the caller's to see to.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_at(&self, key: impl AsRef<[u8]>, receipt: Receipt, actual: u64, time: Time) -> Result<()> {
        self.or_nothing(self.settle_at(key.as_ref(), receipt, actual, time))
    }

    fn settle_at(&self, key: &[u8], receipt: Receipt, actual: u64, time: Time) -> Result<()> {
        self.check_open()?;
        key::check(key)?;
        key::check_cost(actual)?;
        self.check_own(receipt)?;
        if receipt.cost == 0 {
            return Ok(());
        }
        let is_rate = |charge: &Charge<'_>| !charge.bucket.limit().is_concurrency();
        if actual <= receipt.cost {
            return self.give_back(key, receipt, receipt.cost - actual, is_rate, time).map(|_| ());
        }
        let mut group = self.inner.policy.group(key, actual - receipt.cost);
        group.charges.retain(|charge| is_rate(charge));
        if group.charges.is_empty() {
            return Ok(());
        }
        let outcomes = self.inner.store.decide(std::slice::from_ref(&group), Mode::Charge, time);
        outcomes.and_then(|outcomes| outcomes.into_iter().try_for_each(|outcome| outcome.map(|_| ())))
    }

    /// Ends the leases that an admitted decision of this limiter took (`concurrency`); what its other
    /// limits took stays charged. Returns how many leases still counted: 0 for a decision that was
    /// refused, took no lease, was released before, or whose leases have expired.
    ///
    /// # Errors
    /// `closed`, and the store's errors where those are to be [raised](crate::OnStoreFailure::Raise); else 0.
    pub fn release(&self, decision: &Decision) -> Result<u64> {
        self.release_bare_at(decision.key(), decision.bare(), self.read_clock()?)
    }

    /// [`release`](Self::release) of a bare decision about `key`, at a time that was read before.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn release_bare_at(&self, key: impl AsRef<[u8]>, decision: &BareDecision, time: Time) -> Result<u64> {
        match self.tell(decision).receipt() {
            Some(receipt) => self.release_at(key, receipt, time),
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
        let given = self.or_nothing(self.give_back(key.as_ref(), receipt, receipt.cost, leases, time))?;
        Ok(given.into_iter().filter(|&units| units > 0).count() as u64)
    }

    /// Takes back what was admitted but never told.
    pub(super) fn undo(&self, key: &[u8], decision: &BareDecision, time: Time) -> Result<()> {
        let Some(receipt) = self.settle(decision)? else { return Ok(()) };
        let group = self.inner.policy.group(key, receipt.cost);
        let refund = Refund { charges: &group.charges, receipt, undo: true };
        self.inner.store.refund(&refund, time).map(|_| ())
    }

    /// The receipt of a decision of this limiter, the first time only.
    fn settle(&self, decision: &BareDecision) -> Result<Option<Receipt>> {
        self.check_open()?;
        let Some(receipt) = self.tell(decision).receipt() else { return Ok(None) };
        self.check_own(receipt)?;
        Ok(decision.settle().then_some(receipt))
    }

    /// A receipt of other limits, or of another store, must not give anything back here.
    fn check_own(&self, receipt: Receipt) -> Result<()> {
        if receipt.cost == 0 || receipt.origin == self.inner.origin {
            return Ok(());
        }
        Err(Error::argument(
            "a decision of another limiter: give it back to the one that admitted it, or to one of the same limits \
             on the same store",
        ))
    }

    fn give_units(&self, key: &[u8], receipt: Receipt, time: Time) -> Result<u64> {
        self.check_own(receipt)?;
        let given = self.give_back(key, receipt, receipt.cost, |_| true, time)?;
        Ok(given.into_iter().max().unwrap_or(0))
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
        let given =
            self.inner.store.refund(&Refund { charges: &group.charges, receipt, undo: false }, time)?;
        self.inner.counters.refunded(given.iter().copied().max().unwrap_or(0));
        Ok(given)
    }
}
