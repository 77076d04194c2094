//! The store on its good day: how little it is asked.
//!
//! `MIRAB_ATTEMPTS` and `MIRAB_DECISIONS` lengthen the runs.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::load::TOLERANCE;
use common::server::Server;
use common::{number, say};
use mirab::{Limiter, OnStoreFailure, Policy, Store};

fn open(policy: &str, uri: &str) -> Limiter {
    let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(Store::open(uri).unwrap());
    builder.on_store_failure(OnStoreFailure::Raise).build().unwrap()
}

/// One test at a time: beside busy threads an instant would be missed for want of a processor.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A refusal that has been given is given again without the server, which is asked once a second.
#[test]
fn a_hot_refused_key_costs_about_one_call_a_second() {
    let _alone = alone();
    let server = Server::start(&[]);
    let limiter = open("1/day", &server.uri("&timeout_ms=5000"));
    assert!(limiter.allow("hot", 1).unwrap());
    let before = server.calls();
    let least = number("MIRAB_ATTEMPTS", 200_000);
    let (begun, attempts) = (Instant::now(), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while attempts.load(Relaxed) < least || begun.elapsed() < Duration::from_millis(2_100) {
                    (0..1_000).for_each(|_| assert!(!limiter.allow("hot", 1).unwrap()));
                    attempts.fetch_add(1_000, Relaxed);
                }
            });
        }
    });
    let (seconds, calls) = (begun.elapsed().as_secs(), server.calls() - before);
    say(format_args!("a hot refused key: {attempts:?} attempts in {:?} made {calls} calls", begun.elapsed()));
    assert!(calls >= seconds, "others' resets would not be seen");
    // Threads that ask again at the same time travel together: in one call, or in two.
    assert!(calls <= 4 * (seconds + 1), "{calls} calls in {seconds} s");
}

/// The best of a few turns counts: in any one of them the thread may be made to wait.
#[test]
fn a_refused_key_is_admitted_at_the_promised_instant() {
    let _alone = alone();
    let server = Server::start(&[]);
    for policy in
        ["1/250ms", "leaky_bucket: 1/250ms", "sliding_log: 1/250ms", "fixed_window: 1/250ms from first"]
    {
        let limiter = open(policy, &server.uri("&timeout_ms=5000"));
        assert!(limiter.allow("hot", 1).unwrap());
        let before = server.calls();
        let mut late: Vec<Duration> = (0..4).map(|_| lateness(&limiter)).collect();
        late.sort_unstable();
        let calls = server.calls() - before;
        say(format_args!(
            "{policy}: admitted {late:?} after the promised instant (bound 2 ms), {calls} calls"
        ));
        // Of each turn the first, the one that is admitted, and those that ask a moment too early, by the
        // time that an answer takes.
        assert!(calls <= 4 * 10, "{policy}: {calls} calls");
        assert!(late[0] <= TOLERANCE * Duration::from_millis(2), "{policy}: {late:?} late");
    }
}

/// How long after the promised instant a key that is asked for all the time is admitted.
fn lateness(limiter: &Limiter) -> Duration {
    let refused = limiter.acquire("hot", 1).unwrap();
    let promised = Instant::now() + refused.retry_after().unwrap();
    while !limiter.allow("hot", 1).unwrap() {}
    Instant::now().saturating_duration_since(promised)
}

/// What was given back elsewhere is admitted here within a second.
#[test]
fn what_others_do_shows_within_a_second() {
    let _alone = alone();
    let server = Server::start(&[]);
    let uri = server.uri("&timeout_ms=5000");
    // By another URI it shares neither the connection nor what is remembered, as in another process.
    let (here, there) = (open("2/day", &uri), open("2/day", &format!("{uri}&pool=2")));
    let taken = here.acquire("refund", 2).unwrap();
    let admitted = |what: &str, change: &dyn Fn()| {
        while here.allow(what, 1).unwrap() {}
        change();
        let begun = Instant::now();
        while !here.allow(what, 1).unwrap() {
            thread::sleep(Duration::from_millis(1));
        }
        say(format_args!("{what} elsewhere: admitted here {:?} later (bound 1 s)", begun.elapsed()));
        assert!(begun.elapsed() <= TOLERANCE * Duration::from_secs(1));
    };
    admitted("reset", &|| there.reset("reset").unwrap());
    admitted("refund", &|| assert_eq!(there.refund(&taken).unwrap(), 2));
    there.block("unblock", Duration::from_secs(3_600)).unwrap();
    admitted("unblock", &|| there.unblock("unblock").unwrap());
    admitted("lost state", &|| server.tell(&["FLUSHALL"]));
}

/// Those who ask at the same time share calls, and exactly as many pass as may.
#[test]
fn decisions_that_wait_together_travel_together() {
    const KEYS: u64 = 1_000;
    let _alone = alone();
    let server = Server::start(&[]);
    let decisions = number("MIRAB_DECISIONS", 20_000);
    for share in [1, 2] {
        let each = decisions / KEYS / share;
        let limiter = open(&format!("{each}/30 days"), &server.uri("&timeout_ms=5000"));
        let before = server.calls();
        let (begun, next) = (Instant::now(), AtomicU64::new(0));
        let passed: u64 = thread::scope(|scope| {
            let decide = || {
                let turns =
                    std::iter::from_fn(|| Some(next.fetch_add(1, Relaxed)).filter(|&turn| turn < decisions));
                turns.filter(|turn| limiter.allow((turn % KEYS).to_be_bytes(), 1).unwrap()).count() as u64
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(decide)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let calls = server.calls() - before;
        say(format_args!(
            "8 threads: {decisions} decisions, {passed} passed, in {calls} calls and {:?}",
            begun.elapsed()
        ));
        assert_eq!(passed, each * KEYS);
        assert!(calls < decisions / 2, "{calls} calls for {decisions} decisions");
    }
}

/// One who is alone waits for nobody.
#[test]
fn a_lone_caller_makes_one_call_a_decision() {
    let _alone = alone();
    let server = Server::start(&[]);
    let limiter = open("1000/day", &server.uri("&timeout_ms=5000"));
    assert!(limiter.allow("k", 1).unwrap());
    let before = server.calls();
    (0..500).for_each(|_| assert!(limiter.allow("k", 1).unwrap()));
    assert_eq!(server.calls() - before, 500);
}
