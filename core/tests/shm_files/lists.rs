//! Lists that fill their room.

use mirab::{ErrorKind, Limiter, ManualClock, OnStoreFailure, Policy, Store};

use crate::common::shm::Shared;

const POLICIES: [&str; 3] =
    ["sliding_log: 64/hour", "concurrency: 32 for 1h", "sliding_log: 640/hour buckets 200"];

fn made(policy: &str, shared: &Shared, more: &str) -> (Limiter, ManualClock) {
    let store = Store::open(&shared.uri(&format!("?max_keys=60&log_entries=64{more}"))).unwrap();
    let clock = ManualClock::new(1_800_000_000_000_000).unwrap();
    let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(store);
    (builder.clock(clock.clone()).on_store_failure(OnStoreFailure::Raise).build().unwrap(), clock)
}

/// Takes one by one, a second apart, so that each needs its place; how many were taken.
fn take(limiter: &Limiter, clock: &ManualClock, key: u64, count: u64) -> Result<u64, mirab::Error> {
    let mut taken = 0;
    for _ in 0..count {
        taken += u64::from(limiter.allow(key.to_le_bytes(), 1)?);
        clock.advance_us(1_000_000).unwrap();
    }
    Ok(taken)
}

/// One that came first and owes most stays exact, whoever comes.
#[test]
fn of_too_many_the_longest_stay() {
    for policy in POLICIES {
        let shared = Shared::new("longest");
        let (limiter, clock) = made(policy, &shared, "");
        let most = limiter.peek("x", 1).unwrap().limit();
        assert_eq!(take(&limiter, &clock, 0, 30), Ok(30), "{policy}");
        assert!(limiter.allow(0_u64.to_le_bytes(), most - 30).unwrap(), "{policy}");
        for key in 1..40 {
            assert_eq!(take(&limiter, &clock, key, 5), Ok(5), "{policy}");
            assert!(!limiter.allow(0_u64.to_le_bytes(), 1).unwrap(), "{policy}: {key} took its place");
        }
        let stats = limiter.stats();
        assert!(stats.evicted > 0, "{policy}: {stats:?}");
    }
}

/// Where nothing may be forgotten, each is exact or told that there is no room.
#[test]
fn when_refusing_each_is_exact_or_told() {
    for policy in POLICIES {
        let shared = Shared::new("exact");
        let (limiter, clock) = made(policy, &shared, "&when_full=refuse");
        let mut counts = vec![0; 40];
        let (mut full, mut all) = (0, 0);
        for round in 0..12 {
            for (key, count) in counts.iter_mut().enumerate() {
                match limiter.allow((key as u64).to_le_bytes(), 1) {
                    Ok(true) => *count += 1,
                    Ok(false) => panic!("{policy}: {key} is refused in round {round}"),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::StoreFull, "{policy}: {error}");
                        assert!(error.to_string().contains("log_entries"), "{policy}: {error}");
                        full += 1;
                    }
                }
                all += 1;
                clock.advance_us(1_000_000).unwrap();
            }
        }
        assert!(full > 0 && full < all, "{policy}: {full} of {all} had no room");
        for (key, &count) in counts.iter().enumerate() {
            let used = limiter.peek((key as u64).to_le_bytes(), 1).unwrap().used();
            assert_eq!(used, count, "{policy}, {key}");
        }
        // In an hour all of it is free again.
        clock.advance_us(7_200 * 1_000_000).unwrap();
        let most = limiter.peek("x", 1).unwrap().limit();
        assert_eq!(take(&limiter, &clock, 99, 32), Ok(32), "{policy}");
        assert!(limiter.allow(99_u64.to_le_bytes(), most - 32).unwrap(), "{policy}");
        assert!(!limiter.allow(99_u64.to_le_bytes(), 1).unwrap(), "{policy}");
    }
}
