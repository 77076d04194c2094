//! A memory store that cannot be filled: bounded, and what owes most is never lost to fresh keys.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod common;

use std::hash::{DefaultHasher, Hasher};
use std::time::{Duration, Instant};

use common::{Random, limiter};
use mirab::{ErrorKind, Store};

#[test]
fn a_limited_client_is_not_freed_by_keys_that_owe_less() {
    for policy in [
        "5/hour",
        "fixed_window: 5/hour",
        "fixed_window: 5/hour from first",
        "sliding_window: 5/hour",
        "sliding_log: 5/hour",
    ] {
        let store = Store::open("memory:?max_keys=64").unwrap();
        let (limiter, clock) = limiter(policy, &store, 600_000_000);
        assert!(limiter.allow("limited", 5).unwrap());
        for key in 0..20_000_u64 {
            clock.advance_us(50_000).unwrap();
            limiter.allow(key.to_be_bytes(), 1).unwrap();
        }
        // A token bucket has got one back each 12 minutes.
        let since = if policy == "5/hour" { 1 } else { 0 };
        assert_eq!(limiter.peek("limited", 0).unwrap().remaining(), since, "{policy}");
    }
}

#[test]
fn a_new_key_is_limited_where_all_others_owe_as_little() {
    for policy in ["5/hour", "fixed_window: 5/hour", "sliding_window: 5/hour", "sliding_log: 5/hour"] {
        let store = Store::open("memory:?max_keys=64").unwrap();
        let (limiter, _) = limiter(policy, &store, 600_000_000);
        for key in 0..1_000_u64 {
            assert!(limiter.allow(key.to_be_bytes(), 1).unwrap());
        }
        let admitted = (0..50).filter(|_| limiter.allow("new", 1).unwrap()).count();
        assert_eq!(admitted, 5, "{policy}");
    }
}

#[test]
fn what_says_nothing_goes_first_and_is_not_counted() {
    let store = Store::open("memory:?max_keys=1000").unwrap();
    let (limiter, clock) = limiter("1/hour", &store, 0);
    for key in 0..1_000_u64 {
        assert!(limiter.allow(key.to_be_bytes(), 1).unwrap());
    }
    clock.advance_us(3_600_000_000).unwrap();
    for key in 1_000..1_500_u64 {
        assert!(limiter.allow(key.to_be_bytes(), 1).unwrap());
    }
    let stats = limiter.stats();
    assert_eq!(stats.evicted, 0, "{stats:?}");
    for key in 1_000..1_500_u64 {
        assert!(!limiter.allow(key.to_be_bytes(), 1).unwrap());
    }
}

#[test]
fn a_full_store_may_refuse_new_keys_instead() {
    let store = Store::open("memory:?max_keys=100&when_full=refuse").unwrap();
    let (limiter, clock) = limiter("2/hour", &store, 0);
    for key in 0..100_u64 {
        assert!(limiter.allow(key.to_be_bytes(), 1).unwrap());
    }
    let error = limiter.acquire("new", 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreFull, "{error}");
    assert!(error.to_string().contains("100"), "{error}");
    assert!(limiter.peek("new", 1).unwrap().allowed(), "asking needs no room");
    assert!(limiter.allow(0_u64.to_be_bytes(), 1).unwrap(), "a known key has its place");
    assert_eq!(limiter.stats().evicted, 1);
    clock.advance_us(3_600_000_000).unwrap();
    assert!(limiter.allow("new", 1).unwrap());
}

#[test]
fn a_block_outlives_any_number_of_fresh_keys() {
    let store = Store::open("memory:?max_keys=64").unwrap();
    let (limiter, _) = limiter("10/hour", &store, 0);
    limiter.block("him", Duration::from_secs(60)).unwrap();
    for key in 0..10_000_u64 {
        limiter.allow(key.to_be_bytes(), 1).unwrap();
    }
    assert!(limiter.acquire("him", 0).unwrap().is_blocked());
    limiter.reset("him").unwrap();
    assert!(limiter.acquire("him", 1).unwrap().allowed());
}

#[test]
fn chosen_collisions_of_an_unseeded_hash_slow_nothing() {
    // Keys that agree in the low 12 bits of the hash that a table without a seed would use.
    let chosen: Vec<[u8; 8]> = (0_u64..)
        .map(u64::to_be_bytes)
        .filter(|key| {
            let mut hasher = DefaultHasher::new();
            hasher.write(key);
            hasher.finish() & 0xfff == 0
        })
        .take(2_000)
        .collect();
    let mut random = Random(7);
    let ordinary: Vec<[u8; 8]> = (0..2_000).map(|_| random.next().to_be_bytes()).collect();
    let time = |keys: &[[u8; 8]]| {
        let once = || {
            let (limiter, _) = limiter("10/hour", &Store::open("memory:").unwrap(), 0);
            let begun = Instant::now();
            for _ in 0..5 {
                keys.iter().for_each(|key| assert!(limiter.allow(key, 1).unwrap()));
            }
            begun.elapsed()
        };
        (0..5).map(|_| once()).min().unwrap()
    };
    let (slow, quick) = (time(&chosen), time(&ordinary));
    println!("2 000 chosen keys {slow:?}, ordinary ones {quick:?}");
    assert!(slow < quick * 10, "{slow:?} against {quick:?}");
}
