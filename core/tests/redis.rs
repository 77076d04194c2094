//! The Redis store: what it writes, how long it lives, and what happens when the server does not
//! play along.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod common;

use std::io::Read;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use common::relay::Relay;
use common::{fresh_prefix, raw, redis_store, server};
use mirab::{ErrorKind, Limiter, ManualClock, Policy, Store};

fn limiter(policy: &str, store: &Store, at_us: u64) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(at_us).unwrap();
    let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(store.clone());
    (builder.clock(clock.clone()).build().unwrap(), clock)
}

fn get(key: &str) -> Option<String> {
    redis::cmd("GET").arg(key).query(&mut raw()).unwrap()
}

#[test]
fn layout_1_is_pinned_byte_by_byte() {
    for (policy, at_us, costs, id, value) in [
        ("5/minute", 1_000_000, vec![1], "t5/60", "13000000000"),
        ("3/second", 1_000_000, vec![1, 1], "t3/1", "1666666002"),
        ("600000000/second", 0, vec![1], "t600000000/1", "1"),
        ("600000000/second", 7, vec![1], "t600000000/1", "7001"),
        ("1001/second", 1_790_000_000_000_000, vec![1], "t1001/1", "1790000000000999:1"),
        ("5/minute", 1_790_000_000_123_456, vec![5], "t5/60", "1790000060123456000"),
        ("api=100/second burst 300", 0, vec![300], "t=api", "3000000000"),
        ("fixed_window: 10/minute", 119_000_000, vec![4], "f10/60", "400000001"),
        ("fixed_window: 10/minute", 0, vec![1, 2], "f10/60", "300000000"),
        (
            "fixed_window: 4294967295/us",
            5,
            vec![4_294_967_295],
            "f4294967295/1us",
            "42949672950000000000000005",
        ),
        (
            "fixed_window: 10/minute from first",
            1_790_000_000_123_456,
            vec![9],
            "f10/60a",
            "91790000000123456",
        ),
        ("q=fixed_window: 10/1500ms from first", 0, vec![1], "f=q/1500msa", "10000000000000000"),
    ] {
        let (store, prefix) = redis_store();
        let (limiter, _) = limiter(policy, &store, at_us);
        for cost in costs {
            assert!(limiter.acquire("user:42", cost).unwrap().allowed());
        }
        let key = format!("{prefix}1t:{{user:42}}{id}");
        assert_eq!(get(&key).as_deref(), Some(value), "{policy}: {key}");
    }
}

#[test]
fn a_key_outlives_its_state_by_the_margin() {
    let (store, prefix) = redis_store();
    let real =
        Limiter::builder(Policy::parse("10/minute; fixed_window: 5/hour from first").unwrap()).store(store);
    assert!(real.build().unwrap().acquire("k", 2).unwrap().allowed());
    let ttl = |key: String| -> i64 { redis::cmd("PTTL").arg(key).query(&mut raw()).unwrap() };
    let bucket = ttl(format!("{prefix}1:{{k}}t10/60"));
    assert!((1_000..=13_001).contains(&bucket) && bucket > 8_000, "{bucket}");
    let window = ttl(format!("{prefix}1:{{k}}f5/3600a"));
    assert!((3_590_000..=3_601_001).contains(&window), "{window}");

    let (store, prefix) = redis_store();
    let (given, _) = limiter("10/minute", &store, 0);
    assert!(given.acquire("k", 1).unwrap().allowed());
    let day = ttl(format!("{prefix}1t:{{k}}t10/60"));
    assert!((86_400_000..=86_406_001).contains(&day), "{day}");
}

#[test]
fn refusals_questions_and_free_requests_write_nothing() {
    let (store, prefix) = redis_store();
    let (limiter, _) = limiter("5/minute; fixed_window: 3/minute", &store, 0);
    assert!(limiter.peek("k", 1).unwrap().allowed());
    assert!(limiter.acquire("k", 0).unwrap().allowed());
    assert!(!limiter.acquire("k", 4).unwrap().allowed());
    assert!(limiter.acquire("k", 6).unwrap().never());
    let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{prefix}*")).query(&mut raw()).unwrap();
    assert_eq!(keys, Vec::<String>::new());
}

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
fn a_foreign_value_is_an_error_for_that_key_only_and_stays() {
    let (store, prefix) = redis_store();
    let (limiter, _) = limiter("5/minute; fixed_window: 5/minute", &store, 0);
    let bucket = format!("{prefix}1t:{{k}}t5/60");
    let window = format!("{prefix}1t:{{k}}f5/60");
    for (key, value) in
        [(&bucket, "hello"), (&bucket, "-5"), (&bucket, "1.5"), (&window, "7"), (&window, "x00000000")]
    {
        redis::cmd("SET").arg(key).arg(value).exec(&mut raw()).unwrap();
        let error = limiter.acquire("k", 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{error}");
        assert!(error.to_string().contains(key.as_str()), "{error}");
        assert_eq!(get(key).as_deref(), Some(value));
        redis::cmd("DEL").arg(key).exec(&mut raw()).unwrap();
    }
    redis::cmd("LPUSH").arg(&window).arg("x").exec(&mut raw()).unwrap();
    assert_eq!(limiter.acquire("k", 1).unwrap_err().kind(), ErrorKind::StoreCorrupt);
    assert_eq!(get(&bucket), None, "nothing may be charged beside a value that is not ours");
    assert!(limiter.acquire("other", 1).unwrap().allowed());
    limiter.reset("k").unwrap();
    assert!(limiter.acquire("k", 1).unwrap().allowed());
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
    let real = Limiter::builder(Policy::parse("1/hour").unwrap()).store(store).build().unwrap();
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
    let limiter = Limiter::builder(Policy::parse("5/minute").unwrap()).store(store).build().unwrap();
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
    let limiter = Limiter::builder(Policy::parse("5/minute").unwrap()).store(store).build().unwrap();
    for deadline_ms in [100, 50, 50] {
        let begun = Instant::now();
        let error = limiter.acquire("k", 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreTimeout, "{error}");
        assert!(begun.elapsed() >= Duration::from_millis(deadline_ms - 1), "{:?}", begun.elapsed());
        assert!(begun.elapsed() < Duration::from_millis(deadline_ms * 10), "{:?}", begun.elapsed());
    }
}

#[test]
fn wrong_credentials_are_denied_without_showing_them() {
    let uri = server().replace("redis://", "redis://nobody:hunter2@");
    let store = Store::open(&uri).unwrap();
    assert!(!format!("{store:?}").contains("hunter2"));
    let limiter = Limiter::builder(Policy::parse("5/minute").unwrap()).store(store).build().unwrap();
    let error = limiter.acquire("k", 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreDenied, "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn a_lost_connection_costs_one_error_at_most_and_charges_nothing_twice() {
    let relay = Relay::to(&server());
    let uri = format!("redis://{}?timeout_ms=5000&prefix={}", relay.address, fresh_prefix());
    let policy = Policy::parse("100/hour").unwrap();
    let limiter = Limiter::builder(policy).store(Store::open(&uri).unwrap()).build().unwrap();
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
        Limiter::builder(Policy::parse("1/hour").unwrap()).store(store).build().unwrap()
    };
    assert!(open("").allow("k", 1).unwrap());
    assert!(!open("").allow("k", 1).unwrap());
    assert!(open("x").allow("k", 1).unwrap());
}
