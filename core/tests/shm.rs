//! Shared memory, within one process: every kind of state, what is wrong with a file, and its bounds.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use std::thread;

use common::Random;
use common::shm::Shared;
use mirab::{ErrorKind, Limiter, Policy, Store};

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

/// What other processes do, threads do too: each kind of limit on a key of its own, while others come new, are
/// evicted, blocked, given back and forgotten beside it.
#[test]
fn threads_take_exactly_what_there_is() {
    let rounds = std::env::var("MIRAB_ROUNDS").map_or(3, |text| text.parse().unwrap());
    for round in 0..rounds {
        let shared = Shared::new("threads");
        let store = Store::open(&shared.uri("?max_keys=512&log_entries=512&timeout_ms=5000")).unwrap();
        for (policy, most) in [
            ("400 per 365 days", 400),
            ("fixed_window: 400/30 days from first", 400),
            ("sliding_window: 400/365 days", 400),
            ("sliding_log: 400/day", 400),
            ("concurrency: 200 for 1h", 200),
            ("400 per 365 days; sliding_log: 500/day; fixed_window: 600/day from first", 400),
        ] {
            let limiter = limiter(policy, &store);
            let passed: usize = thread::scope(|scope| {
                let taker = |seed: u64| {
                    let limiter = &limiter;
                    move || {
                        let mut random = Random(1 + round * 8 + seed);
                        let mut passed = 0;
                        for turn in 0..300 {
                            passed += usize::from(limiter.allow(policy, 1).unwrap());
                            beside(limiter, &format!("{seed} {} {policy}", turn % 40), &mut random);
                        }
                        passed
                    }
                };
                let takers: Vec<_> = (0..4).map(|seed| scope.spawn(taker(seed))).collect();
                takers.into_iter().map(|taker| taker.join().unwrap()).sum()
            });
            assert_eq!(passed, most, "{policy}");
        }
    }
}

/// Something or other with a key of this thread's own.
fn beside(limiter: &Limiter, key: &str, random: &mut Random) {
    match random.below(6) {
        0 => limiter.reset(key).unwrap(),
        1 => limiter.block(key, std::time::Duration::from_micros(50)).unwrap(),
        2 => limiter.unblock(key).unwrap(),
        3 => {
            let decision = limiter.acquire(key, 3).unwrap();
            limiter.refund(&decision).unwrap();
        }
        4 => drop(limiter.peek(limiter.policy().to_string(), 1).unwrap()),
        _ => {
            limiter.allow(key, 1).unwrap();
        }
    }
}

/// Whoever was told to refuse refuses, whatever is to happen when a store fails; and the log says that it is full.
#[test]
fn what_is_full_refuses_new_keys_and_says_so() {
    let shared = Shared::new("full");
    let store = Store::open(&shared.uri("?max_keys=50&when_full=refuse")).unwrap();
    let limiter = limiter("5/hour", &store);
    let full = (0..200).find_map(|key| limiter.allow(format!("key {key}"), 1).err()).unwrap();
    assert_eq!(full.kind(), ErrorKind::StoreFull, "{full}");
    assert!(limiter.allow("key 0", 1).unwrap());
    assert_eq!(limiter.stats().degraded, 0);
}

#[test]
fn that_live_states_are_forgotten_is_told_once() {
    let shared = Shared::new("forgets");
    let limiter = limiter("5/hour", &Store::open(&shared.uri("?max_keys=50")).unwrap());
    let mut told = Vec::new();
    for key in 0.. {
        limiter.allow(format!("key {key}"), 1).unwrap();
        told.extend(limiter.take_news());
        if !told.is_empty() {
            break;
        }
    }
    assert!(told[0].text.contains("forgets live states") && !told[0].is_error, "{told:?}");
    assert!(limiter.stats().evicted > 0);
}

#[test]
fn another_limiter_of_the_process_hears_what_it_asks_in_vain() {
    let shared = Shared::new("others");
    let first = limiter("5/hour", &Store::open(&shared.uri("?timeout_ms=70")).unwrap());
    assert!(first.take_news().is_empty());
    let second = limiter("5/hour", &Store::open(&shared.uri("?timeout_ms=80&when_full=refuse")).unwrap());
    let told = second.take_news();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].text.contains("timeout_ms=70") && told[0].text.contains("when_full=refuse"), "{told:?}");
}

/// Blocks are never evicted: so they take half of the room at most, and limits go on beside them.
#[test]
fn blocks_leave_room_for_others() {
    let shared = Shared::new("blocks");
    let limiter = limiter("3/day", &Store::open(&shared.uri("?max_keys=100")).unwrap());
    let blocked = (0..1_000)
        .filter(|key| limiter.block(format!("blocked {key}"), std::time::Duration::from_secs(3600)).is_ok());
    assert!((20..=120).contains(&blocked.count()));
    assert_eq!((0..20).filter(|_| limiter.allow("key", 1).unwrap()).count(), 3);
    assert!(!limiter.peek("blocked 0", 1).unwrap().allowed());
}

#[test]
fn a_policy_that_has_no_room_is_refused_when_it_is_made() {
    let shared = Shared::new("policy");
    let store = Store::open(&shared.uri("?max_keys=1")).unwrap();
    let policy = Policy::parse("100/day; 10/hour; 3/minute").unwrap();
    let error = Limiter::builder(policy).store(store).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("max_keys=1"), "{error}");
}
