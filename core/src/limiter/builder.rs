//! The builder of a limiter.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{Closing, Inner, Limiter};
use crate::Result;
use crate::clock::Clock;
use crate::failure::OnStoreFailure;
use crate::policy::Policy;
use crate::receipt::ORIGIN_BITS;
use crate::stats::Counters;
use crate::store::Store;

/// Builds a [`Limiter`]; see [`Limiter::builder`].
#[derive(Debug)]
pub struct LimiterBuilder {
    policy: Policy,
    store: Store,
    clock: Clock,
}

impl LimiterBuilder {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, store: Store::default(), clock: Clock::default() }
    }

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
                origin: origin(&policy, &store),
                policy,
                apart: Default::default(),
                store,
                clock,
                counters: Counters::default(),
                closing: Closing::default(),
            }),
        })
    }
}

/// The same for equal limits on the same store, in every process.
fn origin(policy: &Policy, store: &Store) -> u32 {
    let mut hash = Sha256::new();
    hash.update(store.identity());
    for charge in policy.group(b"", 0).charges {
        hash.update([0]);
        hash.update(charge.bucket.id());
    }
    let digest = hash.finalize();
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]) >> (32 - ORIGIN_BITS)
}
