//! The public surface of a limiter, in memory.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use mirab::{Clock, Error, ErrorKind, Limit, Limiter, ManualClock, Policy, Store};

fn limiter(policy: &str) -> (Limiter, ManualClock) {
    let clock = ManualClock::default();
    let limiter = Limiter::builder(Policy::parse(policy).unwrap()).clock(clock.clone()).build().unwrap();
    (limiter, clock)
}

#[test]
fn a_full_bucket_and_its_refill() {
    let (limiter, clock) = limiter("5/minute");
    let admitted = (0..60).filter(|_| {
        let allowed = limiter.allow("k", 1).unwrap();
        clock.advance_us(1_000_000).unwrap();
        allowed
    });
    assert_eq!(admitted.count(), 9);
}

#[test]
fn a_decision_tells_everything() {
    let (limiter, _) = limiter("login=5/minute");
    let decision = limiter.acquire("k", 5).unwrap();
    assert!(decision.allowed() && !decision.never() && !decision.degraded());
    assert_eq!((decision.limit(), decision.used(), decision.remaining()), (5, 5, 0));
    assert_eq!(decision.reset_after(), Duration::from_secs(60));
    assert_eq!(decision.limit_name(), "login");
    assert_eq!(decision.decided().next_after, Some(Duration::from_secs(12)));
    let refused = limiter.acquire("k", 2).unwrap();
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(24)));
}

#[test]
fn deny_and_unlimited() {
    let (deny, _) = limiter("deny");
    for cost in [0, 1] {
        let decision = deny.acquire("k", cost).unwrap();
        assert!(!decision.allowed() && decision.never());
        assert_eq!((decision.limit(), decision.remaining()), (0, 0));
    }
    let (unlimited, _) = limiter("unlimited");
    assert!(unlimited.acquire("k", 1 << 53).unwrap().allowed());
    let (both, _) = limiter("unlimited; 2/minute");
    assert_eq!(both.acquire("k", 2).unwrap().limit_name(), "2/minute");
    assert!(!both.allow("k", 1).unwrap());
}

#[test]
fn what_is_no_key_or_cost_is_an_error_and_takes_nothing() {
    let (limiter, _) = limiter("5/minute");
    let kind = |result: mirab::Result<bool>| result.unwrap_err().kind();
    assert_eq!(kind(limiter.allow("", 1)), ErrorKind::InvalidArgument);
    assert_eq!(kind(limiter.allow(vec![0; 65_537], 1)), ErrorKind::InvalidArgument);
    assert_eq!(kind(limiter.allow("k", (1 << 53) + 1)), ErrorKind::InvalidArgument);
    assert_eq!(limiter.peek("k", 0).unwrap().remaining(), 5);
    assert!(limiter.allow(b"\0\xff{}", 1).unwrap());
}

#[test]
fn text_and_bytes_are_one_key_and_limits_do_not_share() {
    let store = Store::open("memory:").unwrap();
    let of = |text: &str| {
        Limiter::builder(Limit::parse(text).unwrap())
            .store(store.clone())
            .on_store_failure(mirab::OnStoreFailure::Raise)
            .build()
            .unwrap()
    };
    assert_eq!(of("5/minute").acquire("a", 1).unwrap().remaining(), 4);
    assert_eq!(of("5 per 60 s").acquire(b"a", 1).unwrap().remaining(), 3);
    assert_eq!(of("100/minute").acquire("a", 1).unwrap().remaining(), 99);
    assert_eq!(of("x=5/minute").acquire("a", 1).unwrap().remaining(), 4);
}

#[test]
fn answers_are_counted() {
    let (limiter, _) = limiter("5/minute");
    assert!(limiter.allow("k", 5).unwrap());
    assert!(!limiter.allow("k", 1).unwrap());
    assert!(!limiter.acquire("k", 1).unwrap().allowed());
    assert!(limiter.acquire("k", 6).unwrap().never());
    assert!(limiter.peek("k", 0).unwrap().allowed(), "a question is not counted");
    limiter.block("b", Duration::from_secs(1)).unwrap();
    assert!(!limiter.allow("b", 1).unwrap());
    limiter.acquire("", 1).unwrap_err();
    let many = limiter.acquire_many(&[("m", 2), ("m", 9), ("b", 1)]).unwrap();
    assert_eq!(limiter.refund(&many[0]).unwrap(), 2);
    let stats = limiter.stats();
    let told = [stats.allowed, stats.refused, stats.never, stats.blocked, stats.errors, stats.refunded];
    assert_eq!(told, [2, 2, 2, 2, 1, 2], "{stats:?}");
    assert_eq!((stats.keys, stats.evicted), (2, 0));
}

#[test]
fn many_keys_at_once() {
    let (limiter, _) = limiter("5/minute");
    let decisions = limiter.acquire_many(&[("a", 3), ("b", 5), ("a", 2), ("a", 1), ("c", 0)]).unwrap();
    let told: Vec<(bool, u64)> = decisions.iter().map(|it| (it.allowed(), it.remaining())).collect();
    assert_eq!(told, [(true, 2), (true, 0), (true, 0), (false, 0), (true, 5)]);
    let error = limiter.acquire_many(&[("x", 1), ("", 1)]).unwrap_err();
    assert!(error.to_string().starts_with("item 1: "), "{error}");
    let error = limiter.acquire_many(&[("x", 1), ("y", (1 << 53) + 1)]).unwrap_err();
    assert!(error.to_string().starts_with("item 1: cost"), "{error}");
    assert_eq!(limiter.peek("x", 0).unwrap().remaining(), 5, "nothing was done");
    assert!(limiter.acquire_many::<&str>(&[]).unwrap().is_empty());
}

#[test]
fn a_block_holds_under_any_policy_until_it_is_lifted() {
    let store = Store::open("memory:").unwrap();
    let clock = ManualClock::default();
    let of = |text: &str| {
        let builder = Limiter::builder(Limit::parse(text).unwrap()).store(store.clone());
        builder.clock(clock.clone()).build().unwrap()
    };
    let (one, other) = (of("5/minute"), of("unlimited"));
    one.block("k", Duration::from_secs(10)).unwrap();
    for decision in [other.acquire("k", 1), one.acquire("k", 0), one.peek("k", 1)] {
        let decision = decision.unwrap();
        assert!(!decision.allowed() && !decision.never() && decision.is_blocked());
        assert_eq!((decision.limit_name(), decision.limit_index()), ("block", None));
        assert_eq!((decision.remaining(), decision.retry_after()), (0, Some(Duration::from_secs(10))));
    }
    one.block("k", Duration::from_secs(2)).unwrap();
    clock.set_us(2_000_000).unwrap();
    assert!(other.allow("k", 1).unwrap(), "a later block replaces an earlier one");
    one.block("k", Duration::from_secs(10)).unwrap();
    one.unblock("k").unwrap();
    one.unblock("k").unwrap();
    assert!(one.allow("k", 1).unwrap());
    assert!(one.block("k", Duration::ZERO).is_err());
    assert!(one.block("k", Duration::from_secs(1 << 40)).is_err());
}

#[test]
fn closed_is_closed_for_every_clone() {
    let (limiter, _) = limiter("5/minute");
    let clone = limiter.clone();
    limiter.close();
    limiter.close();
    for error in [
        clone.acquire("k", 1).unwrap_err(),
        clone.allow("k", 1).unwrap_err(),
        clone.peek("k", 1).unwrap_err(),
        clone.reset("k").unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
}

#[test]
fn a_host_clock_is_read_once_a_decision_and_its_error_is_returned() {
    static READS: AtomicU64 = AtomicU64::new(0);
    let clock = Clock::host(|| match READS.fetch_add(1, Ordering::Relaxed) {
        3 => Err(Error::new(ErrorKind::InvalidArgument, "the host has no time")),
        _ => Ok(7),
    });
    let policy = Policy::parse("5/minute; fixed_window: 9/hour").unwrap();
    let limiter = Limiter::builder(policy).clock(clock).build().unwrap();
    assert!(limiter.allow("k", 1).unwrap());
    limiter.reset("k").unwrap();
    assert!(limiter.peek("k", 1).unwrap().allowed());
    assert_eq!(READS.load(Ordering::Relaxed), 3);
    assert_eq!(limiter.allow("k", 1).unwrap_err().to_string(), "the host has no time");
    assert_eq!(limiter.peek("k", 0).unwrap().remaining(), 5);
}

#[test]
fn exactly_the_limit_passes_from_many_threads() {
    let policy = Policy::parse("1000/hour; fixed_window: 1500/30 days").unwrap();
    let limiter = Limiter::builder(policy).build().unwrap();
    for key in 0..20 {
        let key = format!("key {key}");
        let passed: usize = thread::scope(|scope| {
            let workers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..500).filter(|_| limiter.allow(&key, 1).unwrap()).count()))
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(passed, 1000);
        assert_eq!(limiter.peek(&key, 0).unwrap().standings().nth(1).unwrap().used, 1000);
    }
}
