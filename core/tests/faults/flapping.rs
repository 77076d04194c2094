//! A store that comes and goes, and what was on its way when it went.

use std::thread;
use std::time::Duration;

use mirab::{ErrorKind, Limiter, OnStoreFailure, Policy, Store};

use crate::common::load::wait_until;
use crate::common::relay::{Manner, Relay};
use crate::common::say;
use crate::common::server::Server;

fn limiter(policy: &str, uri: &str, choice: OnStoreFailure) -> Limiter {
    let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(Store::open(uri).unwrap());
    builder.on_store_failure(choice).build().unwrap()
}

/// The server executes what is asked, but its answers are kept back again and again. A caller who is alone
/// knows of each of his requests whether it may have been charged.
#[test]
fn what_was_not_answered_is_never_sent_again() {
    let server = Server::start(&[]);
    let relay = Relay::to(&server.address());
    let limiter = limiter("1000/30 days", &relay.uri("&timeout_ms=40"), OnStoreFailure::Raise);
    let (mut answered, mut lost, mut unsent) = (0, 0, 0);
    let mut ask = |key: &str| match limiter.acquire(key, 1) {
        Ok(_) => answered += 1,
        Err(error) if error.to_string().contains("may have been done") => {
            assert_eq!(error.kind(), ErrorKind::StoreTimeout);
            lost += 1;
        }
        Err(_) => unsent += 1,
    };
    for _ in 0..5 {
        relay.set(Manner::Pass);
        wait_until("the store", || limiter.peek("other", 1).is_ok());
        (0..5).for_each(|_| ask("k"));
        relay.set(Manner::Silence);
        (0..10).for_each(|_| ask("k"));
    }
    relay.set(Manner::Pass);
    wait_until("the store", || limiter.peek("other", 1).is_ok());
    let charged = limiter.peek("k", 1).unwrap().used();
    say(format_args!(
        "answers kept back: {answered} answered, {lost} lost, {unsent} not sent; {charged} charged"
    ));
    assert_eq!(charged, answered + lost);
    assert!(lost >= 5 && lost + unsent == 50 && answered == 25);
}

/// While the store is away the process admits its own limit, once: not again each time that the store was
/// there for a moment.
#[test]
fn a_store_that_comes_and_goes_gives_nobody_his_limit_again_and_again() {
    let server = Server::start(&[]);
    thread::scope(|scope| {
        for policy in [
            "20/30 days",
            "leaky_bucket: 20/30 days queue 19",
            "fixed_window: 20/10000 days",
            "fixed_window: 20/30 days from first",
            "sliding_window: 20/30 days",
            "sliding_log: 20/30 days",
            "sliding_log: 20/30 days buckets 30",
            "concurrency: 20 for 300s",
        ] {
            scope.spawn(|| come_and_go(policy, &server));
        }
    });
}

fn come_and_go(policy: &str, server: &Server) {
    let relay = Relay::to(&server.address());
    let limiter = limiter(policy, &relay.uri("&timeout_ms=5000"), OnStoreFailure::Local);
    let mut admitted = [0, 0];
    let mut ask = || {
        let decision = limiter.acquire("k", 1).unwrap();
        admitted[usize::from(decision.degraded())] += u64::from(decision.allowed());
        decision.degraded()
    };
    for _ in 0..6 {
        relay.set(Manner::Reset);
        (0..8).for_each(|_| _ = ask());
        relay.set(Manner::Pass);
        while ask() {
            thread::sleep(Duration::from_millis(2));
        }
    }
    let [by_store, by_process] = admitted;
    say(format_args!(
        "coming and going: of {policy} the store admitted {by_store}, the process {by_process}"
    ));
    assert!((6..=20).contains(&by_store), "{policy}: the store admitted {by_store}");
    assert!((8..=20).contains(&by_process), "{policy}: the process admitted {by_process}");
}

/// Whatever was asked, alone or together, the process goes on from what the store said last.
#[test]
fn a_process_goes_on_from_what_the_store_said() {
    let mut server = Server::start(&[]);
    let limiter = limiter("5/30 days", &server.uri("&timeout_ms=5000"), OnStoreFailure::Local);
    assert!(limiter.allow("allow", 4).unwrap());
    assert!(limiter.acquire("acquire", 4).unwrap().allowed());
    let many = limiter.acquire_many(&[("many", 1), ("many", 3)]).unwrap();
    assert!(many.iter().all(mirab::Decision::allowed));
    server.kill();
    for key in ["allow", "acquire", "many"] {
        let decision = limiter.acquire(key, 2).unwrap();
        assert!(decision.degraded() && !decision.allowed(), "{key}: {decision:?}");
        assert_eq!(decision.remaining(), 1, "{key}");
        assert!(limiter.allow(key, 1).unwrap(), "{key}");
    }
    // While requests fail, and nobody looks for the server yet, the wait is a real one, too.
    let closed = Limiter::builder(Policy::parse("5/minute").unwrap()).store(limiter.store().clone());
    let closed = closed.on_store_failure(OnStoreFailure::Closed).build().unwrap();
    let wait = closed.acquire("k", 1).unwrap().retry_after().unwrap();
    assert!(wait >= Duration::from_millis(1), "{wait:?}");
}
