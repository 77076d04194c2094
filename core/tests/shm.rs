//! Shared memory, within one process: every kind of state, what is wrong with a file, and its bounds.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use common::shm::Shared;
use mirab::{Limiter, Policy, Store};

fn limiter(policy: &str, store: &Store) -> Limiter {
    Limiter::builder(Policy::parse(policy).unwrap()).store(store.clone()).build().unwrap()
}

#[test]
fn every_kind_of_limit_admits_its_number_and_no_more() {
    let shared = Shared::new("kinds");
    for (policy, most) in [
        ("10/hour", 10),
        ("leaky_bucket: 10/hour queue 9", 10),
        ("fixed_window: 10/30 days from first", 10),
        ("sliding_window: 10/365 days", 10),
        ("sliding_log: 10/hour", 10),
        ("sliding_log: 10/hour buckets 6", 10),
        ("concurrency: 10 for 1h", 10),
        ("7/hour; sliding_log: 20/day; concurrency: 30 for 1h; fixed_window: 9/day from first", 7),
    ] {
        let limiter = limiter(policy, &shared.store());
        let admitted = (0..40).filter(|_| limiter.allow("key", 1).unwrap()).count();
        assert_eq!(admitted, most, "{policy}");
        limiter.reset("key").unwrap();
        let decision = limiter.acquire("key", 3).unwrap();
        assert!(decision.allowed() && decision.remaining() == most as u64 - 3, "{policy}: {decision:?}");
        assert_eq!(
            limiter.refund(&decision).unwrap(),
            if policy.contains("queue") { 0 } else { 3 },
            "{policy}"
        );
    }
}
