//! At most the promised number, counted from outside while many callers hit one key.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::redis_store;
use mirab::{Limiter, Policy, Store};

const CALLERS: usize = 8;

fn stores() -> [Store; 2] {
    [Store::open("memory:").unwrap(), redis_store().0]
}

fn limiter(policy: &str, store: &Store) -> Limiter {
    Limiter::builder(Policy::parse(policy).unwrap())
        .store(store.clone())
        .on_store_failure(mirab::OnStoreFailure::Raise)
        .build()
        .unwrap()
}

/// When each admitted call began and ended, in microseconds.
fn admitted(limiter: &Limiter, for_us: u64) -> Vec<(u64, u64)> {
    let begun = Instant::now();
    let now = || begun.elapsed().as_micros() as u64;
    let mut calls: Vec<(u64, u64)> = thread::scope(|scope| {
        let caller = || {
            let mut calls = Vec::new();
            loop {
                let start = now();
                if start > for_us {
                    return calls;
                }
                if limiter.allow("k", 1).unwrap() {
                    calls.push((start, now()));
                }
            }
        };
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
        callers.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    calls.sort_unstable();
    calls
}

/// The most calls that lie wholly within a span, less what `promise` (of the span) allows.
fn excess(calls: &[(u64, u64)], promise: impl Fn(u64) -> u64) -> i64 {
    let mut worst = i64::MIN;
    for (first, &(start, _)) in calls.iter().enumerate() {
        let mut ends: Vec<u64> = calls[first..].iter().map(|&(_, end)| end).collect();
        ends.sort_unstable();
        for (count, end) in ends.into_iter().enumerate() {
            worst = worst.max(count as i64 + 1 - promise(end - start) as i64);
        }
    }
    worst
}

#[test]
fn never_more_than_the_promise_in_any_span() {
    for store in stores() {
        // Capacity and rate x t; a call that lies in a span was decided in it, on a clock whose
        // microseconds may round one way at its start and the other at its end.
        let bucket = limiter("1000/s burst 50", &store);
        let calls = admitted(&bucket, 400_000);
        assert!(calls.len() > 100, "{}", calls.len());
        let worst = excess(&calls, |span| 50 + (span + 2) / 1_000);
        assert!(worst <= 0, "token bucket on {}: {worst} too many", store.kind());

        for policy in [
            "sliding_log: 40/100 ms",
            "sliding_log: 40/100ms buckets 10",
            "x=sliding_log: 40/100ms; 1000/s burst 900",
        ] {
            let log = limiter(policy, &store);
            let calls = admitted(&log, 350_000);
            assert!(calls.len() > 40, "{policy}: {}", calls.len());
            let worst = excess(&calls, |span| 40 * ((span + 2) / 100_000 + 1));
            assert!(worst <= 0, "{policy} on {}: {worst} too many", store.kind());
        }
        for policy in ["fixed_window: 40/100ms", "sliding_window: 40/100ms"] {
            let window = limiter(policy, &store);
            let calls = admitted(&window, 350_000);
            let worst = excess(&calls, |span| 40 * ((span + 2) / 100_000 + 2));
            assert!(worst <= 0, "{policy} on {}: {worst} too many", store.kind());
        }
    }
}

#[test]
fn all_or_nothing_under_many_callers() {
    let policy = "a=100000/hour; b=leaky_bucket: 100000/hour queue 99999; c=fixed_window: 100000/30 days; \
                  d=sliding_window: 100000/30 days; e=sliding_log: 100000/hour; \
                  f=sliding_log: 100000/hour buckets 60; last=fixed_window: 40/30 days";
    for store in stores() {
        let limiter = limiter(policy, &store);
        let passed: usize = thread::scope(|scope| {
            let caller = || (0..60).filter(|_| limiter.allow("k", 1).unwrap()).count();
            let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
            callers.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!(passed, 40);
        let decision = limiter.acquire("k", 1).unwrap();
        assert!(!decision.allowed());
        assert_eq!(decision.limit_name(), "last");
        // Nothing drains noticeably: 100 000 an hour is one in 36 ms, so that a little may be back.
        for standing in decision.standings() {
            let drained = if ["a", "b"].contains(&standing.name()) { 40 } else { 0 };
            assert!(
                (40 - drained..=40).contains(&standing.used),
                "{} on {}: {standing:?}",
                standing.name(),
                store.kind()
            );
        }
    }
}

#[test]
fn leases_are_never_more_than_the_limit() {
    for store in stores() {
        let limiter = limiter("concurrency: 5 for 30s", &store);
        let in_flight = std::sync::atomic::AtomicI64::new(0);
        let most = std::sync::atomic::AtomicI64::new(0);
        thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(|| {
                    use std::sync::atomic::Ordering::SeqCst;
                    for _ in 0..100 {
                        let decision = limiter.acquire("k", 1).unwrap();
                        if decision.allowed() {
                            most.fetch_max(in_flight.fetch_add(1, SeqCst) + 1, SeqCst);
                            thread::sleep(Duration::from_micros(50));
                            in_flight.fetch_sub(1, SeqCst);
                            assert_eq!(limiter.release(&decision).unwrap(), 1);
                            assert_eq!(limiter.release(&decision).unwrap(), 0);
                        }
                    }
                });
            }
        });
        let most = most.into_inner();
        assert!((2..=5).contains(&most), "{most} in flight");
        assert_eq!(limiter.peek("k", 5).unwrap().remaining(), 5);
    }
}
