//! The keys on a server: whose they are, what they show, and with what commands they are touched.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::time::Duration;

use common::fresh_prefix;
use common::server::Server;
use mirab::{ErrorKind, Limiter, ManualClock, OnStoreFailure, Policy, Store};

const POLICY: &str = "1/hour; sliding_log: 9/hour; concurrency: 9 for 60s";

fn open(uri: &str) -> Limiter {
    open_at(uri, None)
}

fn open_at(uri: &str, clock: Option<ManualClock>) -> Limiter {
    let store = Store::open(&format!("{uri}&timeout_ms=5000")).unwrap();
    let builder = Limiter::builder(Policy::parse(POLICY).unwrap()).store(store);
    let builder = match clock {
        Some(clock) => builder.clock(clock),
        None => builder,
    };
    builder.on_store_failure(OnStoreFailure::Raise).build().unwrap()
}

fn keys_of(server: &Server) -> BTreeSet<String> {
    redis::cmd("KEYS").arg("*").query(&mut server.raw()).unwrap()
}

#[test]
fn hashed_identities_are_shared_by_those_who_know_the_secret() {
    let server = Server::start(&[]);
    let uri = server.uri("");
    let one = "&hash_keys=the%20secret%20of%20one%20service";
    let limiter = |parameters: &str| open(&format!("{uri}{parameters}"));
    // Different URIs, so that each has a connection and a memory of its own.
    assert!(limiter(one).allow("alice@example.com", 1).unwrap());
    assert!(!limiter(&format!("{one}&pool=2")).allow("alice@example.com", 1).unwrap());
    assert_eq!(keys_of(&server).len(), 3, "one for each limit");
    assert!(limiter("&hash_keys=the%20secret%20of%20another").allow("alice@example.com", 1).unwrap());
    assert!(limiter("").allow("alice@example.com", 1).unwrap());
    assert_eq!(keys_of(&server).len(), 9, "none of them twice");
}

#[test]
fn hashed_identities_show_in_no_key_and_no_error() {
    let server = Server::start(&[]);
    let uri = server.uri("&hash_keys=0123456789abcdef");
    let (real, given) = (open(&uri), open_at(&uri, Some(ManualClock::new(5).unwrap())));
    for key in ["alice", "bob", "carol"] {
        for limiter in [&real, &given] {
            limiter.acquire(key, 1).unwrap();
            limiter.block(key, Duration::from_secs(60)).unwrap();
        }
    }
    let keys = keys_of(&server);
    assert_eq!(keys.len(), 3 * 2 * 4);
    for key in &keys {
        let (_, rest) = key.split_once("{~").expect(key);
        let (hash, _) = rest.split_once('}').expect(key);
        assert!(
            hash.len() == 22 && !["alice", "bob", "carol"].iter().any(|name| key.contains(name)),
            "{key}"
        );
    }
    for key in keys {
        redis::cmd("SET").arg(key).arg("x").exec(&mut server.raw()).unwrap();
    }
    let error = real.peek("alice", 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{error}");
    assert!(!error.to_string().contains("alice"), "{error}");
}

#[test]
fn neighbours_are_left_alone() {
    let server = Server::start(&[]);
    let base = format!("redis://{}?prefix={}", server.address(), fresh_prefix());
    let beside = ["", "1", "1:", "11", "1t", "1t:", ":"];
    let all: Vec<Limiter> = beside.iter().map(|ending| open(&format!("{base}{ending}"))).collect();
    let given: Vec<Limiter> = beside
        .iter()
        .map(|ending| open_at(&format!("{base}{ending}"), Some(ManualClock::new(5).unwrap())))
        .collect();
    let used = |limiters: &[Limiter]| -> Vec<u64> {
        limiters.iter().map(|limiter| limiter.peek("k", 1).unwrap().used()).collect()
    };
    all.iter().chain(&given).for_each(|limiter| assert!(limiter.allow("k", 1).unwrap()));
    server.tell(&["SET", "somebody's own", "1"]);
    let before = keys_of(&server);
    assert_eq!(before.len(), 2 * 3 * beside.len() + 1);

    all[0].reset("k").unwrap();
    assert_eq!((used(&all), used(&given)), (vec![0, 1, 1, 1, 1, 1, 1], vec![1; 7]));
    assert_eq!(keys_of(&server).len(), before.len() - 3);
    given[0].reset("k").unwrap();
    assert_eq!((used(&all), used(&given)), (vec![0, 1, 1, 1, 1, 1, 1], vec![0, 1, 1, 1, 1, 1, 1]));
    assert_eq!(keys_of(&server).len(), before.len() - 6);

    // Nor does a block reach them, or lifting one.
    all[0].block("k", Duration::from_secs(60)).unwrap();
    all[1].block("k", Duration::from_secs(60)).unwrap();
    let blocked = || all.iter().map(|limiter| limiter.peek("k", 0).unwrap().limit_name() == "block");
    assert!(blocked().eq([true, true, false, false, false, false, false]));
    all[0].unblock("k").unwrap();
    assert!(blocked().eq([false, true, false, false, false, false, false]));
}

#[test]
fn nothing_is_ever_looked_for_among_others_keys() {
    let server = Server::start(&[]);
    let docs = include_str!("../../docs/redis.md");
    let mut documented: BTreeSet<&str> = docs
        .lines()
        .filter(|line| line.starts_with("~mirab1:"))
        .flat_map(|line| line.split(' ').filter_map(|right| right.strip_prefix('+')))
        .collect();
    assert!(documented.contains("evalsha"));
    // What health asks, and connecting; and what this test itself sends, as old and new servers name it.
    documented.extend(["ping", "info", "config", "config|resetstat", "client", "client|setinfo"]);

    server.tell(&["CONFIG", "RESETSTAT"]);
    let limiter = open(&server.uri(""));
    let taken = limiter.acquire("k", 1).unwrap();
    limiter.acquire("k", 1).unwrap();
    limiter.acquire_many(&[("a", 1), ("b", 1), ("a", 1)]).unwrap();
    limiter.release(&taken).unwrap();
    limiter.refund(&taken).unwrap();
    let taken = limiter.acquire("c", 1).unwrap();
    limiter.commit(&taken, 0).unwrap();
    limiter.block("k", Duration::from_secs(60)).unwrap();
    limiter.unblock("k").unwrap();
    limiter.reset("k").unwrap();
    limiter.health().unwrap();
    let stats = server.info("commandstats");
    let sent: BTreeSet<&str> = stats.keys().filter_map(|name| name.strip_prefix("cmdstat_")).collect();
    assert!(sent.contains("evalsha") && sent.contains("del"), "{sent:?}");
    assert!(sent.is_subset(&documented), "{:?}", sent.difference(&documented).collect::<Vec<_>>());
}
