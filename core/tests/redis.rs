//! The Redis store: whose bucket it is, and what happens when the server does not play along.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::relay::{Manner, Relay};
use common::server::Server;
use common::{fresh_prefix, limiter, raw, redis_store, server};
use mirab::{ErrorKind, Limiter, OnStoreFailure, Policy, Store};

#[test]
fn a_flushed_script_cache_changes_nothing() {
    let (store, _) = redis_store();
    let (limiter, _) = limiter("3/hour", &store, 0);
    for left in [2, 1, 0] {
        redis::cmd("SCRIPT").arg("FLUSH").exec(&mut raw()).unwrap();
        assert_eq!(limiter.acquire("k", 1).unwrap().remaining(), left);
    }
    assert!(!limiter.allow("k", 1).unwrap());
}

#[test]
fn no_key_reaches_anothers_bucket() {
    let (store, _) = redis_store();
    let (limiter, _) = limiter("1/hour", &store, 0);
    let long = "x".repeat(10_000);
    let longer = "x".repeat(10_001);
    let keys: [&[u8]; 12] = [
        b"a",
        b"a\0",
        b"\0a",
        b"a}",
        b"{a}",
        b"a}t1/3600",
        b"'a'",
        b"\"a\"",
        b"a\r\nFLUSHALL\r\n",
        b"\xff\xfe",
        long.as_bytes(),
        longer.as_bytes(),
    ];
    for key in keys {
        assert!(limiter.allow(key, 1).unwrap(), "{key:?}");
    }
    for key in keys {
        assert!(!limiter.allow(key, 1).unwrap());
    }
}

#[test]
fn real_and_given_times_have_their_own_keys() {
    let (store, _) = redis_store();
    let (given, _) = limiter("1/hour", &store, 1 << 51);
    let real = Limiter::builder(Policy::parse("1/hour").unwrap())
        .store(store)
        .on_store_failure(OnStoreFailure::Raise)
        .build()
        .unwrap();
    assert!(given.allow("k", 1).unwrap());
    assert!(real.allow("k", 1).unwrap());
    assert!(!real.allow("k", 1).unwrap());
}

#[test]
fn exactly_the_limit_passes_from_many_threads() {
    let (store, _) = redis_store();
    let limiter =
        Limiter::builder(Policy::parse("100/hour; fixed_window: 1000/30 days").unwrap()).store(store);
    let limiter = limiter.build().unwrap();
    let passed: usize = thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| (0..50).filter(|_| limiter.allow("k", 1).unwrap()).count()))
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(passed, 100);
}

#[test]
fn nobody_listens() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = Store::open(&format!("redis://{free}")).unwrap();
    let limiter = Limiter::builder(Policy::parse("5/minute").unwrap())
        .store(store)
        .on_store_failure(OnStoreFailure::Raise)
        .build()
        .unwrap();
    let error = limiter.acquire("k", 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains(&free.to_string()), "{error}");
    assert_eq!(limiter.reset("k").unwrap_err().kind(), ErrorKind::StoreUnavailable);
}

#[test]
fn a_server_that_takes_everything_and_says_nothing_costs_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || std::io::copy(&mut stream.take(u64::MAX), &mut std::io::sink()));
        }
    });
    let store = Store::open(&format!("redis://{address}?timeout_ms=50&connect_timeout_ms=100")).unwrap();
    let limiter = Limiter::builder(Policy::parse("5/minute").unwrap())
        .store(store)
        .on_store_failure(OnStoreFailure::Raise)
        .build()
        .unwrap();
    let ask = || {
        let begun = Instant::now();
        let error = limiter.acquire("k", 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreTimeout, "{error}");
        begun.elapsed()
    };
    let first = ask();
    assert!(first >= Duration::from_millis(99) && first < Duration::from_millis(1_000), "{first:?}");
    // Later ones have the shorter deadline, and none wait once the circuit is open.
    let later: Vec<Duration> = (0..6).map(|_| ask()).collect();
    assert!(later.iter().all(|&took| took < Duration::from_millis(500)), "{later:?}");
    assert!(later.iter().min() < Some(&Duration::from_millis(25)), "{later:?}");
}

#[test]
fn who_comes_while_the_first_connection_is_made_waits_for_it() {
    let relay = Relay::to(&server());
    relay.set(Manner::Slow(Duration::from_millis(400)));
    let store = Store::open(&relay.uri("&timeout_ms=50&connect_timeout_ms=9000")).unwrap();
    let policy = Policy::parse("8/hour").unwrap();
    let limiter = Limiter::builder(policy).store(store).on_store_failure(OnStoreFailure::Raise);
    let limiter = limiter.build().unwrap();
    thread::scope(|scope| {
        for place in 0..8 {
            let limiter = &limiter;
            scope.spawn(move || {
                thread::sleep(Duration::from_millis(place * 5));
                assert!(limiter.acquire("k", 1).unwrap().allowed());
            });
        }
    });
}

#[test]
fn wrong_credentials_are_denied_without_showing_them() {
    let uri = server().replace("redis://", "redis://nobody:hunter2@");
    let store = Store::open(&uri).unwrap();
    assert!(!format!("{store:?}").contains("hunter2"));
    let limiter = Limiter::builder(Policy::parse("5/minute").unwrap())
        .store(store)
        .on_store_failure(OnStoreFailure::Raise)
        .build()
        .unwrap();
    let error = limiter.acquire("k", 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreDenied, "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn the_documented_rights_are_enough_and_the_least() {
    let docs = include_str!("../../docs/redis.md");
    let rights = docs.lines().find_map(|line| line.strip_prefix("~mirab1:* ~mirab1t:* ")).unwrap();
    let user = fresh_prefix();
    let set = |rights: &[&str]| {
        let fixed = [&user, "reset", "on", ">secret", &format!("~{user}1:*"), &format!("~{user}1t:*")];
        redis::cmd("ACL").arg("SETUSER").arg(&fixed).arg(rights).exec(&mut raw()).unwrap();
    };
    let uri = server().replace("redis://", &format!("redis://{user}:secret@"));
    let store = Store::open(&format!("{uri}?timeout_ms=5000&prefix={user}")).unwrap();
    let every = "5/minute; leaky_bucket: 5/minute queue 4; fixed_window: 5/minute; sliding_window: 5/minute; \
                 sliding_log: 5/minute; sliding_log: 5/minute buckets 6; concurrency: 5 for 60s";
    let play = |key: &str| -> mirab::Result<()> {
        let (limiter, clock) = limiter(every, &store, 100_000_000);
        let real = Limiter::builder(Policy::parse("5/minute").unwrap())
            .store(store.clone())
            .on_store_failure(OnStoreFailure::Raise)
            .build()?;
        real.acquire(key, 1)?;
        let taken = limiter.acquire(key, 1)?;
        limiter.acquire(key, 2)?;
        limiter.release(&taken)?;
        limiter.refund(&taken)?;
        limiter.block(key, Duration::from_secs(1))?;
        limiter.unblock(key)?;
        limiter.acquire(key, 5)?;
        // A step back, a step over the end: every list is mended and trimmed.
        for at_us in [50_000_000, 90_000_000, 115_000_000, 300_000_000] {
            clock.set_us(at_us).unwrap();
            limiter.acquire(key, 1)?;
        }
        limiter.reset(key)
    };
    let all: Vec<&str> = rights.split(' ').collect();
    set(&all);
    play("all").unwrap();
    // What may not be asked is not known, and is no failure.
    let health = limiter("1/hour", &store, 0).0.health().unwrap();
    assert!(health.ok && health.clock_ahead_us.is_some() && health.last_error.is_none(), "{health:?}");
    assert_eq!((health.server_version, health.maxmemory_policy), (None, None));
    set(&[&all[..], &["+info"]].concat());
    let health = limiter("1/hour", &store, 0).0.health().unwrap();
    assert!(health.server_version.is_some() && health.maxmemory_policy.is_some(), "{health:?}");
    for left_out in all.iter().filter(|right| right.starts_with('+')) {
        let fewer: Vec<&str> = all.iter().copied().filter(|right| right != left_out).collect();
        set(&fewer);
        redis::cmd("SCRIPT").arg("FLUSH").exec(&mut raw()).unwrap();
        let error = play(&format!("without {left_out}")).expect_err(left_out);
        assert_eq!(error.kind(), ErrorKind::StoreDenied, "without {left_out}: {error}");
    }
    redis::cmd("ACL").arg("DELUSER").arg(&user).exec(&mut raw()).unwrap();
}

#[test]
fn a_connection_that_was_closed_while_idle_costs_nothing() {
    let relay = Relay::to(&server());
    let uri = format!("redis://{}?timeout_ms=5000&prefix={}", relay.address, fresh_prefix());
    let policy = Policy::parse("100/hour").unwrap();
    let limiter = Limiter::builder(policy)
        .store(Store::open(&uri).unwrap())
        .on_store_failure(OnStoreFailure::Raise)
        .build()
        .unwrap();
    assert!(limiter.allow("k", 1).unwrap());
    relay.cut();
    // Long enough for the connection to be asked first.
    thread::sleep(Duration::from_millis(1_100));
    assert_eq!(limiter.acquire("k", 1).unwrap().used(), 2);
}

#[test]
fn what_is_no_redis_is_said_to_be_none_in_one_line() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n");
        }
    });
    let store = Store::open(&format!("redis://{address}?timeout_ms=5000")).unwrap();
    let limiter = Limiter::builder(Policy::parse("5/minute").unwrap())
        .store(store)
        .on_store_failure(OnStoreFailure::Raise)
        .build()
        .unwrap();
    let error = limiter.acquire("k", 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains("not a Redis") && !error.to_string().contains('\n'), "{error}");
}

#[test]
fn a_lost_connection_costs_one_error_at_most_and_charges_nothing_twice() {
    let relay = Relay::to(&server());
    let uri = format!("redis://{}?timeout_ms=5000&prefix={}", relay.address, fresh_prefix());
    let policy = Policy::parse("100/hour").unwrap();
    let limiter = Limiter::builder(policy)
        .store(Store::open(&uri).unwrap())
        .on_store_failure(OnStoreFailure::Raise)
        .build()
        .unwrap();
    assert!(limiter.allow("k", 1).unwrap());
    relay.cut();
    let outcomes: Vec<bool> = (0..3).map(|_| limiter.allow("k", 1).is_ok()).collect();
    assert!(outcomes[1] && outcomes[2], "{outcomes:?}");
    let answered = 1 + outcomes.iter().filter(|&&ok| ok).count() as u64;
    assert_eq!(limiter.peek("k", 0).unwrap().used(), answered);
}

#[test]
fn equal_uris_share_a_store_and_prefixes_separate_them() {
    let prefix = fresh_prefix();
    let open = |suffix: &str| {
        let store = Store::open(&format!("{}?timeout_ms=5000&prefix={prefix}{suffix}", server())).unwrap();
        Limiter::builder(Policy::parse("1/hour").unwrap())
            .store(store)
            .on_store_failure(OnStoreFailure::Raise)
            .build()
            .unwrap()
    };
    assert!(open("").allow("k", 1).unwrap());
    assert!(!open("").allow("k", 1).unwrap());
    assert!(open("x").allow("k", 1).unwrap());
}

#[test]
fn one_connection_serves_a_few_and_a_crowd_has_more() {
    let server = Server::start(&[]);
    // The connections of the store are those on its database.
    let store = Store::open(&server.uri("&timeout_ms=5000&pool=3").replace('?', "/5?")).unwrap();
    let policy = Policy::parse("1000000/second").unwrap();
    let limiter = Limiter::builder(policy).store(store).on_store_failure(OnStoreFailure::Raise);
    let limiter = limiter.build().unwrap();
    let mut raw = server.raw();
    let mut connections = || {
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut raw).unwrap();
        list.lines().filter(|line| line.contains(" db=5 ")).count()
    };
    let ask = |thread: usize, turn: usize| assert!(limiter.allow(format!("{thread} {turn}"), 1).unwrap());
    thread::scope(|scope| {
        (0..8).for_each(|thread| _ = scope.spawn(move || (0..100).for_each(|turn| ask(thread, turn))));
    });
    assert_eq!(connections(), 1);

    let (stop, begun) = (AtomicBool::new(false), Instant::now());
    thread::scope(|scope| {
        for thread in 0..250 {
            let (ask, stop) = (&ask, &stop);
            scope.spawn(move || {
                (0..).take_while(|_| !stop.load(Ordering::Relaxed)).for_each(|turn| ask(thread, turn));
            });
        }
        while connections() < 3 && begun.elapsed() < Duration::from_secs(20) {
            thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(connections(), 3);
}
