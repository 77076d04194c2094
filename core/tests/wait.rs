//! Waiting: at the promised instants, without a busy loop, and never longer than asked.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{limiter, redis_store};
use mirab::{ErrorKind, Limiter, Policy, Store};

fn stores() -> [Store; 2] {
    [Store::open("memory:").unwrap(), redis_store().0]
}

fn real(policy: &str, store: &Store) -> Limiter {
    Limiter::builder(Policy::parse(policy).unwrap())
        .store(store.clone())
        .on_store_failure(mirab::OnStoreFailure::Raise)
        .build()
        .unwrap()
}

#[test]
fn a_manual_clock_is_advanced_and_no_time_is_taken() {
    for store in stores() {
        let begun = Instant::now();
        let (limiter, clock) = limiter("1/hour; leaky_bucket: 1/30 minutes queue 5", &store, 0);
        for turn in 0..24 {
            assert!(limiter.wait("k", 1, None).unwrap().allowed());
            assert_eq!(clock.now_us(), turn * 3_600_000_000);
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn it_returns_at_once_when_no_wait_helps() {
    let (limiter, clock) = limiter("5/minute", &Store::open("memory:").unwrap(), 0);
    assert!(limiter.wait("k", 6, None).unwrap().never());
    assert!(limiter.wait("k", 5, None).unwrap().allowed());
    let late = limiter.wait("k", 1, Some(Duration::from_micros(11_999_999))).unwrap();
    assert!(!late.allowed());
    assert_eq!((late.retry_after(), clock.now_us()), (Some(Duration::from_secs(12)), 0));
    assert!(limiter.wait("k", 1, Some(Duration::from_secs(12))).unwrap().allowed());
    assert_eq!(clock.now_us(), 12_000_000);
    limiter.block("k", Duration::from_secs(9)).unwrap();
    assert!(limiter.wait("k", 0, Some(Duration::from_secs(60))).unwrap().allowed());
    assert_eq!(clock.now_us(), 21_000_000);
}

#[test]
fn a_leaky_request_is_held_until_its_turn() {
    let (limiter, clock) = limiter("leaky_bucket: 1/second queue 5", &Store::open("memory:").unwrap(), 0);
    for turn in 0..4 {
        assert!(limiter.wait("k", 1, None).unwrap().allowed());
        assert_eq!(clock.now_us(), turn * 1_000_000);
    }
    // Two are taken without waiting; the third's turn lies beyond its timeout, and it is told so.
    limiter.acquire("k", 2).unwrap();
    let early = limiter.wait("k", 1, Some(Duration::from_millis(500))).unwrap();
    assert!(early.allowed());
    assert_eq!((early.delay(), clock.now_us()), (Duration::from_secs(3), 3_000_000));
}

#[test]
fn many_wait_and_each_is_admitted_at_a_promised_instant() {
    for store in stores() {
        // One at once, then one in 20 ms: the 32nd is due after 620 ms.
        let limiter = real("50/second burst 1", &store);
        let begun = Instant::now();
        let mut admitted: Vec<Duration> = thread::scope(|scope| {
            let one = || {
                assert!(limiter.wait("k", 1, Some(Duration::from_secs(30))).unwrap().allowed());
                begun.elapsed()
            };
            let waiters: Vec<_> = (0..32).map(|_| scope.spawn(one)).collect();
            waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect()
        });
        admitted.sort_unstable();
        for (turn, at) in admitted.iter().enumerate() {
            let due = Duration::from_millis(20) * turn as u32;
            assert!(*at + Duration::from_millis(2) >= due, "turn {turn} at {at:?}");
        }
        assert!(admitted[31] < Duration::from_millis(6_200), "{:?}", admitted[31]);
        // Each instant wakes those who wait, and one of them is admitted: no busy loop.
        let stats = limiter.stats();
        assert_eq!(stats.allowed, 32);
        assert!(stats.refused <= 32 * 33, "{stats:?}");
    }
}

#[test]
fn a_timeout_of_nothing_asks_once() {
    for store in stores() {
        let limiter = real("1/hour; concurrency: 1 for 1 hour", &store);
        assert!(limiter.wait("k", 1, Some(Duration::ZERO)).unwrap().allowed());
        assert!(!limiter.wait("k", 1, Some(Duration::ZERO)).unwrap().allowed());
    }
}

#[test]
fn a_timeout_is_kept_and_closing_wakes() {
    for store in stores() {
        let limiter = real("1/hour; concurrency: 1 for 1 hour", &store);
        let free = real("concurrency: 1 for 1 hour", &store);
        assert!(limiter.allow("k", 1).unwrap());
        let held = free.acquire("lease", 1).unwrap();

        let begun = Instant::now();
        assert!(!free.wait("lease", 1, Some(Duration::from_millis(50))).unwrap().allowed());
        assert!((50..1_000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());

        thread::scope(|scope| {
            let waiter = scope.spawn(|| free.wait("lease", 1, None).unwrap().allowed());
            thread::sleep(Duration::from_millis(30));
            assert_eq!(free.release(&held).unwrap(), 1);
            assert!(waiter.join().unwrap(), "a release is noticed");

            let waiter = scope.spawn(|| limiter.wait("k", 1, None).unwrap_err().kind());
            thread::sleep(Duration::from_millis(30));
            let begun = Instant::now();
            limiter.close();
            assert_eq!(waiter.join().unwrap(), ErrorKind::Closed);
            assert_eq!(
                limiter.wait("k", 1, Some(Duration::from_nanos(1))).unwrap_err().kind(),
                ErrorKind::InvalidArgument
            );
            assert!(begun.elapsed() < Duration::from_secs(1));
        });
    }
}
