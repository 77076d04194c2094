//! The builder of a limiter.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{Closing, Inner, Instead, Limiter};
use crate::clock::Clock;
use crate::failure::OnStoreFailure;
use crate::limit::{Limit, MAX_COUNT};
use crate::policy::Policy;
use crate::receipt::ORIGIN_BITS;
use crate::stats::Counters;
use crate::store::Store;
use crate::{Error, Result};

/// Builds a [`Limiter`]; see [`Limiter::builder`].
#[derive(Debug)]
pub struct LimiterBuilder {
    policy: Policy,
    store: Store,
    clock: Clock,
    on_store_failure: OnStoreFailure,
    instances: u64,
}

impl LimiterBuilder {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            store: Store::default(),
            clock: Clock::default(),
            on_store_failure: OnStoreFailure::default(),
            instances: 1,
        }
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

    /// Says what happens when a store elsewhere fails: by default
    /// [`Local`](OnStoreFailure::Local).
    #[must_use]
    pub fn on_store_failure(mut self, choice: OnStoreFailure) -> Self {
        self.on_store_failure = choice;
        self
    }

    /// How many processes share the store (1 unless told): while it fails, each admits that part of every
    /// limit by itself. With 1 each admits all of it.
    #[must_use]
    pub fn instances(mut self, instances: u64) -> Self {
        self.instances = instances;
        self
    }

    /// The limiter. Nothing is started and no socket is opened.
    ///
    /// # Errors
    /// `invalid_argument` for a number of instances outside 1 to 2^32-1; `unsupported` for a limit whose list
    /// is longer than a shared-memory store was made for.
    pub fn build(self) -> Result<Limiter> {
        let Self { policy, store, clock, on_store_failure, instances } = self;
        if !(1..=MAX_COUNT).contains(&instances) {
            return Err(Error::argument(format!("{instances} instances: it must be 1 to {MAX_COUNT}")));
        }
        store.check(policy.limits())?;
        let instead = store
            .can_fail()
            .then(|| {
                let shares: Vec<Limit> = policy.limits().iter().map(|limit| limit.share(instances)).collect();
                let own = shares.iter().map(Limit::apart).collect();
                let (shares, own) = (Policy::new(shares)?, Policy::new(own)?);
                Ok(Instead { choice: on_store_failure, instances, shares, own })
            })
            .transpose()?;
        Ok(Limiter {
            inner: Arc::new(Inner {
                origin: origin(&policy, &store),
                is_elsewhere: !store.is_local(),
                instead,
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
