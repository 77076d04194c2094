//! Full: what owes most is kept, or nothing new comes in.

use std::time::Duration;

use mirab::{ErrorKind, Limiter, ManualClock, OnStoreFailure, Policy, Store};

use crate::common::shm::Shared;
use crate::limiter;

const MAX_KEYS: u64 = 1_000;

fn with_clock(policy: &str, store: &Store) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(1_800_000_000_000_000).unwrap();
    let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(store.clone());
    (builder.clock(clock.clone()).on_store_failure(OnStoreFailure::Raise).build().unwrap(), clock)
}

fn store(shared: &Shared, more: &str) -> Store {
    Store::open(&shared.uri(&format!("?max_keys={MAX_KEYS}&log_entries=16{more}"))).unwrap()
}

#[test]
fn what_owes_most_is_kept() {
    let shared = Shared::new("most");
    let limiter = limiter("sliding_window: 1000/365 days", &store(&shared, ""));
    let big = |key: u64| format!("big {key}");
    for key in 0..200 {
        assert!(limiter.allow(big(key), 900).unwrap());
    }
    for key in 0..5 * MAX_KEYS {
        assert!(limiter.allow(format!("fresh {key}"), 1 + key % 5).unwrap(), "{key}");
    }
    let lost = (0..200).filter(|&key| limiter.peek(big(key), 1).unwrap().used() < 900).count();
    assert_eq!(lost, 0, "of those that owe most");
    let stats = limiter.stats();
    assert!((MAX_KEYS..=MAX_KEYS * 2).contains(&stats.keys), "{stats:?}");
    assert_eq!(stats.keys + stats.evicted, 200 + 5 * MAX_KEYS, "{stats:?}");
}

/// While there are some that owe nothing any more, none that owes something is lost.
#[test]
fn nothing_that_owes_is_lost_while_others_say_nothing() {
    let shared = Shared::new("lossless");
    let store = store(&shared, "");
    let (limiter, clock) = with_clock("100/minute", &store);
    let (indebted, _) = with_clock("sliding_window: 1000/365 days", &store);
    for key in 0..MAX_KEYS / 2 {
        assert!(indebted.allow(key.to_le_bytes(), 1 + key % 3).unwrap());
    }
    for wave in 0..20_u64 {
        for key in 0..MAX_KEYS / 4 {
            assert!(limiter.allow(format!("{wave} {key}"), 100).unwrap());
        }
        clock.advance_us(61 * 1_000_000).unwrap();
    }
    let kept =
        (0..MAX_KEYS / 2).filter(|&key| indebted.peek(key.to_le_bytes(), 1).unwrap().used() == 1 + key % 3);
    assert_eq!(kept.count() as u64, MAX_KEYS / 2);
    assert_eq!(limiter.stats().evicted, 0, "{:?}", limiter.stats());
}

#[test]
fn when_refusing_nothing_live_is_forgotten() {
    let shared = Shared::new("refuse");
    let (limiter, clock) = with_clock("10/hour", &store(&shared, "&when_full=refuse"));
    let name = |key: u64| key.to_le_bytes();
    for key in 0..MAX_KEYS {
        assert!(limiter.allow(name(key), 10).unwrap(), "there is room for {MAX_KEYS}, not only {key}");
    }
    let mut refused = 0;
    for key in MAX_KEYS..5 * MAX_KEYS {
        match limiter.allow(name(key), 10) {
            Ok(admitted) => assert!(admitted),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StoreFull, "{error}");
                assert!(error.to_string().contains("max_keys"), "{error}");
                refused += 1;
            }
        }
    }
    let stats = limiter.stats();
    assert_eq!((stats.keys + refused, stats.evicted), (5 * MAX_KEYS, refused), "{stats:?}");
    for key in 0..MAX_KEYS {
        assert!(!limiter.allow(name(key), 1).unwrap(), "{key} was forgotten");
    }
    // Who pays back makes room, for all who come.
    clock.advance_us(3_600 * 1_000_000).unwrap();
    for key in 0..MAX_KEYS {
        assert!(limiter.allow(name(5 * MAX_KEYS + key), 1).unwrap(), "{key}");
    }
    assert!(limiter.stats().keys <= stats.keys);
}

/// Blocked keys are nobody's to forget: when they fill half, the next is told.
#[test]
fn blocked_keys_stay_blocked() {
    let shared = Shared::new("blocks");
    let limiter = limiter("10/hour", &store(&shared, ""));
    let mut blocked = Vec::new();
    for key in 0..3 * MAX_KEYS {
        match limiter.block(key.to_le_bytes(), Duration::from_secs(3_600)) {
            Ok(()) => blocked.push(key),
            Err(error) => assert_eq!(error.kind(), ErrorKind::StoreFull, "{error}"),
        }
    }
    assert!((MAX_KEYS / 2..MAX_KEYS).contains(&(blocked.len() as u64)), "{}", blocked.len());
    for key in 0..3 * MAX_KEYS {
        // The others are decided beside them.
        let decision = limiter.acquire(key.to_le_bytes(), 1).unwrap();
        assert_eq!(decision.is_blocked(), blocked.binary_search(&key).is_ok(), "{key}");
    }
}
