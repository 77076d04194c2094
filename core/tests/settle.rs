//! What is given back: the promise holds for admitted minus given back, in any span.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod common;

use std::thread;
use std::time::Duration;

use common::server::Server;
use common::{Random, limiter, redis_store};
use mirab::{Decision, ErrorKind, Limiter, OnStoreFailure, Policy, Store};

fn stores() -> [Store; 2] {
    [Store::open("memory:").unwrap(), redis_store().0]
}

/// The most that was admitted, less what was given back, in any span of a random history, beyond
/// what `promise` (of the span) allows. A refund counts at the instant at which it is given.
fn excess(policy: &str, store: &Store, seed: u64, promise: impl Fn(u64, u64) -> i64) -> i64 {
    let (limiter, clock) = limiter(policy, store, 1_000_000_000);
    let mut random = Random(seed);
    let key = format!("{policy} {seed}");
    let mut events: Vec<(u64, i64)> = Vec::new();
    let mut open: Vec<Decision> = Vec::new();
    for _ in 0..120 {
        clock.advance_us(random.below(3) * random.below(400_000)).unwrap();
        let now = clock.now_us();
        if random.one_in(3) && !open.is_empty() {
            let decision = open.swap_remove(random.below(open.len() as u64) as usize);
            events.push((now, -(limiter.refund(&decision).unwrap() as i64)));
        } else {
            let cost = 1 + random.below(3);
            let decision = limiter.acquire(&key, cost).unwrap();
            if decision.allowed() {
                events.push((now, cost as i64));
                open.push(decision);
            }
        }
    }
    let mut worst = i64::MIN;
    for first in 0..events.len() {
        let mut sum = 0;
        for &(at, units) in &events[first..] {
            sum += units;
            worst = worst.max(sum - promise(events[first].0, at));
        }
    }
    worst
}

#[test]
fn admitted_less_given_back_stays_within_the_promise() {
    for (store, histories) in stores().iter().zip([200, 20]) {
        for seed in 0..histories {
            // 5 at once and 2 a second.
            let bucket = |from: u64, to: u64| 5 + ((to - from) * 2 / 1_000_000) as i64;
            for policy in ["2/second burst 5", "leaky_bucket: 2/second queue 4"] {
                let worst = excess(policy, store, seed, bucket);
                assert!(worst <= 0, "{policy} seed {seed} on {}: {worst} too many", store.kind());
            }
            let windows = |from: u64, to: u64| ((to / 2_000_000 - from / 2_000_000) as i64 + 1) * 5;
            let worst = excess("fixed_window: 5/2s", store, seed, windows);
            assert!(worst <= 0, "window seed {seed} on {}: {worst} too many", store.kind());
            for policy in ["sliding_log: 5/2s", "sliding_log: 5/2s buckets 4"] {
                let worst = excess(policy, store, seed, |from, to| ((to - from) as i64 / 2_000_000 + 1) * 5);
                assert!(worst <= 0, "{policy} seed {seed} on {}: {worst} too many", store.kind());
            }
        }
    }
}

const EVERY: [&str; 7] = [
    "10/minute",
    "leaky_bucket: 10/minute queue 9",
    "fixed_window: 10/minute",
    "sliding_window: 10/minute",
    "sliding_log: 10/minute",
    "sliding_log: 10/minute buckets 6",
    "concurrency: 10 for 60s",
];

#[test]
fn a_refund_works_once_never_above_full_and_never_for_what_was_not_taken() {
    for store in stores() {
        for policy in EVERY {
            let (limiter, clock) = limiter(policy, &store, 0);
            let taken = limiter.acquire("k", 4).unwrap();
            // Of a queue the first is being served; only what waits may leave.
            let waits = if policy.starts_with("leaky") { limiter.acquire("k", 4).unwrap() } else { taken };
            let used = waits.used();
            assert_eq!(limiter.refund(&waits).unwrap(), 4, "{policy}");
            assert_eq!(limiter.refund(&waits).unwrap(), 0, "{policy}: twice");
            limiter.commit(&waits, 0).unwrap();
            assert_eq!(limiter.peek("k", 0).unwrap().used(), used - 4, "{policy}");

            limiter.reset("k").unwrap();
            let refused = limiter.acquire("k", 11).unwrap();
            assert_eq!(limiter.refund(&refused).unwrap(), 0, "{policy}: refused");
            assert_eq!(limiter.refund(&limiter.peek("k", 1).unwrap()).unwrap(), 0, "{policy}: only asked");

            let old = limiter.acquire("k", 3).unwrap();
            assert_eq!(limiter.refund(&old.clone()).unwrap(), 0, "{policy}: a clone");
            clock.set_us(600_000_000).unwrap();
            assert!(limiter.acquire("k", 2).unwrap().allowed());
            let left = limiter.peek("k", 0).unwrap().remaining();
            let given = limiter.refund(&old).unwrap();
            let now = limiter.peek("k", 0).unwrap().remaining();
            assert_eq!((given, now), (0, left), "{policy}: expired");
        }
    }
}

#[test]
fn commit_gives_back_or_charges_at_most_to_empty() {
    for store in stores() {
        for policy in EVERY.into_iter().filter(|policy| !policy.starts_with("concurrency")) {
            let (limiter, _) = limiter(policy, &store, 0);
            let used = || limiter.peek("k", 0).unwrap().used();
            let queued = limiter.acquire("k", 1).unwrap();
            let first = if policy.starts_with("leaky") {
                1
            } else {
                limiter.refund(&queued).unwrap();
                0
            };
            let taken = limiter.acquire("k", 4).unwrap();
            limiter.commit(&taken, 1).unwrap();
            assert_eq!(used(), first + 1, "{policy}: less");
            let taken = limiter.acquire("k", 2).unwrap();
            limiter.commit(&taken, 5).unwrap();
            assert_eq!(used(), first + 6, "{policy}: more");
            let taken = limiter.acquire("k", 1).unwrap();
            limiter.commit(&taken, 1 << 53).unwrap();
            assert_eq!(used(), 10, "{policy}: far more, debt beyond is forgiven");
            limiter.commit(&taken, 0).unwrap();
            assert_eq!(used(), 10, "{policy}: a second time");
        }
    }
}

#[test]
fn what_another_limiter_took_is_not_given_back() {
    let stores = [stores(), stores()].concat();
    let policies = ["10/hour", "20/hour", "fixed_window: 10/hour", "10/hour; 99/day"];
    let mut all = Vec::new();
    for store in &stores {
        all.extend(policies.map(|policy| limiter(policy, store, 0).0));
    }
    for (owner, limiter) in all.iter().enumerate() {
        let decision = limiter.acquire("k", 2).unwrap();
        for (other, stranger) in all.iter().enumerate().filter(|&(other, _)| other != owner) {
            // The two Redis stores differ by their prefix.
            let error = stranger.refund(&decision).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{owner} {other}");
            assert!(stranger.commit(&decision, 1).is_err());
        }
        assert_eq!(limiter.refund(&decision).unwrap(), 2, "it is still the owner's");
    }
}

#[test]
fn a_failed_acquire_many_leaves_nothing_charged() {
    let (store, prefix) = redis_store();
    let policy = "leaky_bucket: 10/hour queue 9; 10/hour; sliding_log: 10/hour; concurrency: 10 for 60s";
    let (limiter, _) = limiter(policy, &store, 0);
    redis::cmd("SET")
        .arg(format!("{prefix}1t:{{bad}}t10/3600"))
        .arg("junk")
        .exec(&mut common::raw())
        .unwrap();
    let mut items: Vec<(String, u64)> = (0..80).map(|key| (format!("key {key}"), 2)).collect();
    items.insert(70, ("bad".to_owned(), 1));
    items.push(("key 3".to_owned(), 1));
    let error = limiter.acquire_many(&items).unwrap_err();
    assert!(error.to_string().starts_with("item 70: ") && error.kind() == ErrorKind::StoreCorrupt, "{error}");
    for key in 0..80 {
        let peeked = limiter.peek(format!("key {key}"), 0).unwrap();
        assert!(peeked.standings().all(|standing| standing.used == 0), "key {key}: {peeked:?}");
    }
    let stats = limiter.stats();
    assert_eq!((stats.allowed, stats.refunded, stats.errors), (0, 0, 1), "{stats:?}");
}

#[test]
fn those_who_reserve_and_settle_pass_no_more_than_the_limit() {
    for store in stores() {
        for policy in
            ["7/hour", "fixed_window: 7/30 days", "sliding_log: 7/hour", "7/hour; concurrency: 7 for 60s"]
        {
            let (key, policy) = (policy, Policy::parse(policy).unwrap());
            let limiter = Limiter::builder(policy.clone())
                .store(store.clone())
                .on_store_failure(OnStoreFailure::Raise)
                .build()
                .unwrap();
            let kept: usize = thread::scope(|scope| {
                let one = |index: u64| {
                    let limiter = &limiter;
                    move || {
                        let mut random = Random(index);
                        for _ in 0..40 {
                            let decision = limiter.acquire(key, 1).unwrap();
                            if !decision.allowed() {
                                continue;
                            }
                            thread::sleep(Duration::from_micros(random.below(200)));
                            // Half of them fail and give back; who succeeds keeps what he took.
                            if random.one_in(2) {
                                limiter.commit(&decision, 1).unwrap();
                                return 1;
                            }
                            assert_eq!(limiter.refund(&decision).unwrap(), 1);
                        }
                        0
                    }
                };
                let callers: Vec<_> = (0..20).map(|index| scope.spawn(one(index))).collect();
                callers.into_iter().map(|caller| caller.join().unwrap()).sum()
            });
            assert!(kept <= 7, "{policy} on {}: {kept} kept", store.kind());
            let used = limiter.peek(key, 0).unwrap().decided().used;
            assert_eq!(used, kept as u64, "{policy} on {}", store.kind());
        }
    }
}

#[test]
fn what_is_given_back_to_a_store_that_is_away_is_nothing() {
    let mut server = Server::start(&[]);
    let uri = server.uri("&timeout_ms=5000");
    let policy = || Policy::parse("9/hour; concurrency: 9 for 1 minute").unwrap();
    let limiter = |choice| {
        let builder = Limiter::builder(policy()).store(Store::open(&uri).unwrap());
        builder.on_store_failure(choice).build().unwrap()
    };
    let (local, strict) = (limiter(OnStoreFailure::Local), limiter(OnStoreFailure::Raise));
    let [refunded, committed, charged, raised] = [(); 4].map(|()| strict.acquire("k", 2).unwrap());
    server.kill();

    let failed = |kind| kind == ErrorKind::StoreUnavailable;
    assert!(strict.release(&raised).is_err_and(|error| failed(error.kind())));
    assert!(strict.refund(&raised).is_err_and(|error| failed(error.kind())));
    assert!(local.reset("k").is_err_and(|error| failed(error.kind())));
    assert_eq!(local.release(&refunded), Ok(0));
    assert_eq!(local.refund(&refunded), Ok(0));
    assert_eq!(local.commit(&committed, 1), Ok(()));
    assert_eq!(local.commit(&charged, 3), Ok(()));
    assert_eq!(local.stats().refunded, 0);

    // What was decided in the store's place took nothing of the store.
    let degraded = local.acquire("other", 2).unwrap();
    assert!(degraded.allowed() && degraded.degraded());
    assert_eq!((local.release(&degraded), local.refund(&degraded)), (Ok(0), Ok(0)));
}

#[test]
fn a_block_holds_while_the_store_is_away() {
    let mut server = Server::start(&[]);
    let uri = server.uri("&timeout_ms=5000");
    let limiter = |parameters: &str| {
        let store = Store::open(&format!("{uri}{parameters}")).unwrap();
        Limiter::builder(Policy::parse("9/hour; 99/day").unwrap()).store(store).build().unwrap()
    };
    // What one has seen, the other knows only of the server, as in another process.
    let (limiter, other) = (limiter(""), limiter("&pool=3"));
    for key in ["here", "lifted", "reset", "over"] {
        limiter.block(key, Duration::from_secs(if key == "over" { 1 } else { 3_600 })).unwrap();
    }
    other.block("elsewhere", Duration::from_secs(3_600)).unwrap();
    assert!(limiter.acquire("elsewhere", 1).unwrap().is_blocked());
    limiter.unblock("lifted").unwrap();
    limiter.reset("reset").unwrap();
    server.kill();

    let decision = limiter.acquire("here", 1).unwrap();
    assert!(decision.is_blocked() && decision.degraded(), "{decision:?}");
    assert!(decision.retry_after().is_some_and(|wait| wait > Duration::from_secs(3_500)));
    assert!(limiter.acquire("elsewhere", 0).unwrap().is_blocked());
    for key in ["lifted", "reset"] {
        let decision = limiter.acquire(key, 1).unwrap();
        assert!(decision.allowed() && decision.degraded(), "{decision:?}");
    }
    let over = limiter.acquire("over", 1).unwrap();
    thread::sleep(over.retry_after().unwrap_or_default());
    assert!(limiter.acquire("over", 1).unwrap().allowed());
}

#[test]
fn what_the_store_surely_did_not_do_can_be_given_back_again() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = Store::open(&server.uri("&timeout_ms=5000&connect_timeout_ms=5000")).unwrap();
    let policy = Policy::parse("9/hour; concurrency: 9 for 1 hour").unwrap();
    let limiter = Limiter::builder(policy).store(store).on_store_failure(OnStoreFailure::Raise);
    let limiter = limiter.build().unwrap();
    let [refunded, committed, released] = [(); 3].map(|()| limiter.acquire("k", 2).unwrap());
    server.kill();
    // The first may have been sent on a connection that is no more; then the server is known to be away.
    while !limiter.peek("k", 1).is_err_and(|error| !error.may_have_happened()) {}
    for _ in 0..3 {
        let errors = [
            limiter.refund(&refunded).unwrap_err(),
            limiter.commit(&committed, 1).unwrap_err(),
            limiter.release(&released).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| !error.may_have_happened()), "{errors:?}");
    }
    server.run();
    while limiter.peek("k", 1).is_err() {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(limiter.peek("k", 1).unwrap().standings().nth(1).unwrap().remaining, 3);
    assert_eq!((limiter.refund(&refunded), limiter.refund(&refunded)), (Ok(2), Ok(0)));
    limiter.commit(&committed, 1).unwrap();
    assert_eq!(limiter.refund(&committed), Ok(0));
    assert_eq!(limiter.release(&released), Ok(1));
}
