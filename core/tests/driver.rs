//! Requests in an event loop, here one of poll(2): nothing waits in it but the loop itself.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::relay::Relay;
use common::server::Server;
use common::turning::run;
use common::{fresh_prefix, raw, redis_store, say, server};
use mirab::{Driver, ErrorKind, Limiter, OnStoreFailure, Policy, Store, Time};

fn limiter(policy: &str, store: Store) -> Limiter {
    let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(store);
    builder.on_store_failure(OnStoreFailure::Raise).build().unwrap()
}

#[test]
fn many_at_once_are_exact_and_take_few_round_trips() {
    // One of its own, since the calls of others would count.
    let server = Server::start(&[]);
    let store = Store::open(&server.uri("&timeout_ms=5000")).unwrap();
    let limiter = limiter("10/hour; fixed_window: 10/30 days", store);
    let mut driver = Driver::new(&limiter).unwrap().unwrap();
    let calls = || {
        let info: String = redis::cmd("INFO").arg("commandstats").query(&mut server.raw()).unwrap();
        let count = |line: &str| line.split(['=', ',']).nth(1)?.parse::<u64>().ok();
        info.lines().filter(|line| line.starts_with("cmdstat_eval")).filter_map(count).sum::<u64>()
    };
    let before = calls();
    let (mut allowed, mut asked) = (0, 0);
    for _ in 0..30 {
        let mut waiting = 0;
        for id in 0..100_u64 {
            let key = format!("key {}", id % 20);
            // What is answered at once is a refusal that is remembered.
            match driver.acquire(&limiter, id, key.as_bytes(), 1, Time::STORE).unwrap() {
                None => waiting += 1,
                Some(decided) => assert!(!decided.allowed()),
            }
        }
        let answered = run(&mut driver, waiting);
        allowed += answered.values().filter(|one| one.as_ref().unwrap().allowed()).count();
        asked += waiting;
    }
    let sent = calls() - before;
    println!("3000 decisions, {asked} of them asked, in {sent} calls");
    assert_eq!(allowed, 200);
    assert!(sent * 10 <= asked as u64 + 10, "{sent} calls for {asked}");
}

#[test]
fn a_server_that_is_away_costs_the_deadline_and_then_nothing() {
    let store = Store::open("redis://127.0.0.1:1?timeout_ms=50&connect_timeout_ms=50").unwrap();
    let limiter = limiter("5/minute", store);
    let mut driver = Driver::new(&limiter).unwrap().unwrap();
    for id in 0..10 {
        match driver.acquire(&limiter, id, b"k", 1, Time::STORE) {
            Ok(None) => {
                let answered = run(&mut driver, 1);
                assert_eq!(answered[&id].as_ref().unwrap_err().kind(), ErrorKind::StoreUnavailable);
            }
            Ok(Some(decided)) => panic!("{decided:?}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::StoreUnavailable),
        }
    }
    assert!(driver.acquire(&limiter, 11, b"k", 1, Time::STORE).is_err(), "nobody waits any more");
}

#[test]
fn a_burst_beyond_what_a_deadline_holds_keeps_what_was_decided() {
    let server = Server::start(&[]);
    let uri = server.uri("&timeout_ms=100&connect_timeout_ms=5000");
    let limiter = limiter("1000000/hour", Store::open(&uri).unwrap());
    let mut driver = Driver::new(&limiter).unwrap().unwrap();
    assert!(driver.acquire(&limiter, 0, b"k", 1, Time::STORE).unwrap().is_none());
    assert!(run(&mut driver, 1)[&0].as_ref().unwrap().allowed());
    let burst = 50_000;
    for id in 1..=burst {
        assert!(driver.acquire(&limiter, id, b"k", 1, Time::STORE).unwrap().is_none());
    }
    let answered = run(&mut driver, burst as usize);
    let admitted = answered.values().filter(|it| it.as_ref().is_ok_and(|one| one.allowed())).count() as u64;
    let errors: Vec<_> = answered.values().filter_map(|it| it.as_ref().err()).collect();
    let doubtful = errors.iter().filter(|error| error.may_have_happened()).count() as u64;
    say(format_args!("{admitted} of {burst} at once decided in time, {doubtful} sent in vain"));
    assert!(admitted > 64, "{admitted}");
    assert!(errors.iter().all(|error| error.kind() == ErrorKind::StoreTimeout));
    assert_eq!(limiter.health().unwrap().circuit, "closed");
    // What was answered was charged, and nothing else but what was on its way.
    let used = limiter.peek("k", 1).unwrap().used();
    assert!(used > admitted && used <= 1 + admitted + doubtful, "{used}");
    assert!(doubtful <= 8 * 64, "{doubtful}");
}

#[test]
fn a_loop_that_was_busy_gives_nobody_up() {
    let server = Server::start(&[]);
    let limiter =
        limiter("5/hour", Store::open(&server.uri("&timeout_ms=100&connect_timeout_ms=5000")).unwrap());
    let mut driver = Driver::new(&limiter).unwrap().unwrap();
    assert!(driver.acquire(&limiter, 0, b"k", 1, Time::STORE).unwrap().is_none());
    assert!(run(&mut driver, 1)[&0].as_ref().unwrap().allowed());
    // Between asking and the first turn, and between that and the next.
    for busy_before in [true, false] {
        assert!(driver.acquire(&limiter, 1, b"k", 1, Time::STORE).unwrap().is_none());
        if !busy_before {
            driver.turn();
        }
        std::thread::sleep(Duration::from_millis(200));
        assert!(run(&mut driver, 1)[&1].as_ref().unwrap().allowed());
    }
}

#[test]
fn what_is_late_is_given_up_and_never_taken_for_the_next() {
    let uri = format!("{}?timeout_ms=100&prefix={}", server(), fresh_prefix());
    let limiter = limiter("5/hour", Store::open(&uri).unwrap());
    let mut driver = Driver::new(&limiter).unwrap().unwrap();
    assert!(driver.acquire(&limiter, 0, b"k", 1, Time::STORE).unwrap().is_none());
    assert!(run(&mut driver, 1)[&0].as_ref().unwrap().allowed());
    redis::cmd("CLIENT").arg("PAUSE").arg(400).exec(&mut raw()).unwrap();
    assert!(driver.acquire(&limiter, 1, b"k", 1, Time::STORE).unwrap().is_none());
    assert_eq!(run(&mut driver, 1)[&1].as_ref().unwrap_err().kind(), ErrorKind::StoreTimeout);
    redis::cmd("CLIENT").arg("UNPAUSE").exec(&mut raw()).unwrap();
    assert!(driver.acquire(&limiter, 2, b"other", 1, Time::STORE).unwrap().is_none());
    let answered = run(&mut driver, 1);
    assert_eq!(limiter.tell(answered[&2].as_ref().unwrap()).remaining(), 4);
}

#[test]
fn a_connection_that_ends_while_nobody_asks_is_watched_no_more_and_costs_nobody() {
    let relay = Relay::to(&server());
    let limiter = limiter("5/hour", Store::open(&relay.uri("&timeout_ms=5000")).unwrap());
    let mut driver = Driver::new(&limiter).unwrap().unwrap();
    for used in 1..=3 {
        assert!(driver.acquire(&limiter, 0, b"k", 1, Time::STORE).unwrap().is_none());
        let answered = run(&mut driver, 1);
        assert_eq!(limiter.tell(answered[&0].as_ref().unwrap()).used(), used);
        let link = driver.turn().link.unwrap();
        relay.cut();
        let mut fd = libc::pollfd { fd: link, events: libc::POLLIN, revents: 0 };
        // SAFETY: the one entry is valid for the call.
        assert_eq!(unsafe { libc::poll(&raw mut fd, 1, 20_000) }, 1);
        // A loop that still watched it would be called again and again.
        let watch = driver.turn();
        assert_eq!((watch.link, watch.within), (None, Some(Duration::ZERO)));
        // Until the next turn it is still open, so that the loop can leave it.
        // SAFETY: asks about a descriptor, whatever it is.
        assert_ne!(unsafe { libc::fcntl(link, libc::F_GETFD) }, -1);
        assert_eq!(driver.turn().within, None);
    }
}

#[test]
fn what_cannot_be_sent_is_answered_with_an_error() {
    let mut server = Server::start(&["--unixsocket", "redis.sock"]);
    let path = server.dir().join("redis.sock");
    let uri = format!("redis+unix://{}?timeout_ms=5000", path.display());
    let limiter = limiter("5/hour", Store::open(&uri).unwrap());
    let mut driver = Driver::new(&limiter).unwrap().unwrap();
    assert!(driver.acquire(&limiter, 0, b"k", 1, Time::STORE).unwrap().is_none());
    assert!(run(&mut driver, 1)[&0].as_ref().unwrap().allowed());
    server.kill();
    // Nobody has looked at the connection since.
    assert!(driver.acquire(&limiter, 1, b"k", 1, Time::STORE).unwrap().is_none());
    assert_eq!(run(&mut driver, 1)[&1].as_ref().unwrap_err().kind(), ErrorKind::StoreUnavailable);
}

#[test]
#[cfg(feature = "calendar")]
fn every_algorithm_is_read_as_the_others_read_it() {
    let (store, _) = redis_store();
    for policy in [
        "5/hour; fixed_window: 9/day in Africa/Cairo",
        "leaky_bucket: 5/hour queue 4",
        "fixed_window: 5/hour from first",
        "sliding_window: 5/hour; sliding_log: 7/hour; sliding_log: 9/hour buckets 6; concurrency: 8 for 30s",
        "unlimited",
    ] {
        let limiter = limiter(policy, store.clone());
        let mut driver = Driver::new(&limiter).unwrap().unwrap();
        assert!(driver.acquire(&limiter, 7, b"k", 2, Time::STORE).unwrap().is_none());
        let taken = run(&mut driver, 1).remove(&7).unwrap().unwrap();
        assert!(taken.allowed());
        assert!(driver.peek(&limiter, 8, b"k", 1, Time::STORE).unwrap().is_none());
        let peeked = run(&mut driver, 1).remove(&8).unwrap().unwrap();
        let again = limiter.peek("k", 1).unwrap();
        assert_eq!(limiter.tell(&peeked).remaining(), again.remaining(), "{policy}");
        assert_eq!(limiter.tell(&peeked).limit_name(), again.limit_name());
        // Who is served at once has left the queue.
        let given_back = if policy.starts_with("leaky") || policy == "unlimited" { 0 } else { 2 };
        assert_eq!(limiter.refund_bare_at("k", &taken, Time::STORE).unwrap(), given_back, "{policy}");
    }
}
