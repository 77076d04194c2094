//! What a limiter tells of its store's health, and what becomes of keys that the server drops.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::server::Server;
use mirab::{ErrorKind, Limiter, OnStoreFailure, Policy, Store};

fn open(uri: &str) -> Limiter {
    let builder = Limiter::builder(Policy::parse("3/10 days").unwrap()).store(Store::open(uri).unwrap());
    builder.on_store_failure(OnStoreFailure::Raise).build().unwrap()
}

#[test]
fn it_says_what_the_server_is() {
    let server = Server::start(&["--requirepass", "secret"]);
    let limiter = open(&server.uri_as(":secret@", "&timeout_ms=5000"));
    let health = limiter.health().unwrap();
    assert_eq!(health.store, format!("redis://{}", server.address()));
    assert!(health.ok && health.last_error.is_none(), "{health:?}");
    assert_eq!((health.circuit, health.opened, health.layout), ("closed", 0, 1));
    let told = server.info("server");
    let version = told.get("valkey_version").or_else(|| told.get("redis_version"));
    assert_eq!(health.server_version.as_ref(), version);
    // The same clock, asked over one round trip.
    assert!(health.clock_ahead_us.unwrap().abs() < 1_000_000, "{health:?}");

    let memory = Limiter::builder(Policy::parse("3/day").unwrap()).build().unwrap().health().unwrap();
    assert!(memory.ok && memory.circuit == "closed" && memory.server_version.is_none(), "{memory:?}");
}

#[test]
fn it_warns_of_a_server_that_would_drop_keys() {
    let server = Server::start(&[]);
    let limiter = open(&server.uri("&timeout_ms=5000"));
    for (policy, bytes, drops) in [
        ("noeviction", "0", false),
        ("noeviction", "100mb", false),
        ("allkeys-lru", "0", false),
        ("allkeys-lru", "100mb", true),
        ("volatile-ttl", "100mb", true),
    ] {
        server.tell(&["CONFIG", "SET", "maxmemory", bytes]);
        server.tell(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let health = limiter.health().unwrap();
        assert_eq!(health.maxmemory_policy.as_deref(), Some(policy));
        assert_eq!(health.may_drop_keys, Some(drops), "{policy} of {bytes}");
    }
}

#[test]
fn a_key_that_the_server_drops_gives_its_owner_one_capacity_more() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-random"]);
    let limiter = open(&server.uri("&timeout_ms=5000"));
    let admitted = || (0..20).filter(|_| limiter.allow("k", 1).unwrap()).count();
    assert_eq!(admitted(), 3);
    let room = server.info("memory")["used_memory"].parse::<u64>().unwrap() + 200_000;
    server.tell(&["CONFIG", "SET", "maxmemory", &room.to_string()]);
    let mut raw = server.raw();
    let begun = Instant::now();
    for filler in 0.. {
        redis::cmd("SET").arg(filler).arg("x".repeat(1_000)).exec(&mut raw).unwrap();
        let kept: Vec<String> = redis::cmd("KEYS").arg("*{k}*").query(&mut raw).unwrap();
        if kept.is_empty() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "nothing is dropped");
    }
    server.tell(&["CONFIG", "SET", "maxmemory", "0"]);
    // What was refused is asked for again within a second.
    let mut again = 0;
    while again < 3 {
        again += admitted();
        assert!(begun.elapsed() < Duration::from_secs(20), "admitted {again} again");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(again + admitted(), 3);
}

#[test]
fn it_says_what_failed_and_changes_are_news_once() {
    let mut server = Server::start(&[]);
    let limiter = open(&server.uri("&timeout_ms=5000"));
    limiter.acquire("k", 1).unwrap();
    assert!(limiter.take_news().is_empty());
    server.kill();
    let begun = Instant::now();
    while limiter.health().unwrap().circuit != "open" {
        assert!(limiter.acquire("k", 1).is_err());
        assert!(begun.elapsed() < Duration::from_secs(20), "it is never given up");
    }
    let health = limiter.health().unwrap();
    assert!(!health.ok && health.opened == 1, "{health:?}");
    let (kind, text) = health.last_error.unwrap();
    assert_eq!(kind, ErrorKind::StoreUnavailable, "{text}");
    (0..100).for_each(|_| _ = limiter.acquire("k", 1));
    let news = limiter.take_news();
    assert!(news.len() == 1 && news[0].is_error, "{news:?}");
    assert!(
        news[0].text.contains(&server.address()) && news[0].text.contains("is not asked any more"),
        "{news:?}"
    );

    server.run();
    while limiter.acquire("k", 1).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never decides again");
        std::thread::sleep(Duration::from_millis(5));
    }
    let health = limiter.health().unwrap();
    assert!(health.ok && health.circuit == "closed" && health.opened == 1, "{health:?}");
    let news = limiter.take_news();
    assert!(news.len() == 1 && !news[0].is_error && news[0].text.contains("decides again"), "{news:?}");
}

#[test]
fn who_must_know_is_answered_by_the_server_though_it_was_away() {
    let mut server = Server::start(&[]);
    let uri = server.uri("&timeout_ms=5000");
    let builder = Limiter::builder(Policy::parse("3/day").unwrap()).store(Store::open(&uri).unwrap());
    let limiter = builder.build().unwrap();
    for look in [
        |limiter: &Limiter| limiter.reset("k").unwrap(),
        |limiter: &Limiter| limiter.block("other", Duration::from_secs(1)).unwrap(),
        |limiter: &Limiter| assert!(limiter.health().unwrap().ok),
    ] {
        server.kill();
        while limiter.health().unwrap().circuit != "open" {
            assert!(limiter.acquire("k", 1).unwrap().degraded());
        }
        let health = limiter.health().unwrap();
        assert!(!health.ok && health.last_error.is_some(), "{health:?}");
        assert!(health.last_error_age.is_some_and(|age| age < Duration::from_secs(60)));
        assert_eq!(health.may_drop_keys, None, "nobody said");
        server.run();
        look(&limiter);
        assert!(!limiter.acquire("k", 1).unwrap().degraded());
    }
}

#[test]
fn a_value_of_others_is_told_once_and_named() {
    let server = Server::start(&[]);
    let limiter = open(&format!("redis://{}?timeout_ms=5000&prefix=p", server.address()));
    for key in ["a", "b"] {
        server.tell(&["SET", &format!("p1:{{{key}}}t3/864000"), "hello"]);
        for _ in 0..9 {
            assert_eq!(limiter.acquire(key, 1).unwrap_err().kind(), ErrorKind::StoreCorrupt);
        }
    }
    assert!(limiter.acquire("c", 1).unwrap().allowed());
    let news = limiter.take_news();
    assert!(news.len() == 1 && news[0].is_error && news[0].text.contains("p1:{a}t3/864000"), "{news:?}");
    let health = limiter.health().unwrap();
    assert!(health.ok && health.circuit == "closed", "{health:?}");
    assert!(health.last_error.is_some_and(|(_, text)| text.contains("p1:{b}t3/864000")));
}

#[test]
fn a_right_that_one_limit_lacks_is_an_outage_for_all_on_that_uri() {
    let server = Server::start(&[]);
    let rights = ["~*", "resetchannels", "-@all", "+evalsha", "+eval", "+time", "+get", "+set", "+del"];
    server.tell(&[&["ACL", "SETUSER", "few", "on", ">pw"][..], &rights].concat());
    let uri = server.uri_as("few:pw@", "&timeout_ms=5000");
    let limiter = |policy, uri: &str| {
        let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(Store::open(uri).unwrap());
        builder.build().unwrap()
    };
    let (few, other) = (limiter("sliding_log: 9/day", &uri), limiter("9/day", &uri));
    let apart = limiter("9/day", &format!("{uri}&pool=3"));
    (0..9).for_each(|_| assert!(few.acquire("k", 1).unwrap().degraded()));
    assert!(other.acquire("k", 1).unwrap().degraded());
    assert!(!apart.acquire("k", 1).unwrap().degraded());
    let news = other.take_news();
    assert!(news.len() == 1 && news[0].is_error, "{news:?}");
    let last = other.health().unwrap().last_error.unwrap();
    assert_eq!(last.0, ErrorKind::StoreDenied, "{last:?}");
}
