//! Layout 1: what the Redis store writes, byte by byte, and how long it lives.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod common;

use common::{limiter, raw, redis_store};
use mirab::{ErrorKind, Limiter, Policy};

/// What is stored under a key, whatever its type; the random names of leases as `LEASE`.
fn stored(key: &str) -> String {
    let mut redis = raw();
    let kind: String = redis::cmd("TYPE").arg(key).query(&mut redis).unwrap();
    match kind.as_str() {
        "string" => redis::cmd("GET").arg(key).query(&mut redis).unwrap(),
        "list" => {
            redis::cmd("LRANGE").arg(key).arg(0).arg(-1).query::<Vec<String>>(&mut redis).unwrap().join(" ")
        }
        "zset" => {
            let items = redis::cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES").query(&mut redis);
            let name = |item: String| match item.split_once(':') {
                Some((lease, units)) if lease.len() == 22 => format!("LEASE:{units}"),
                _ if item.len() == 22 => "LEASE".to_owned(),
                _ => item,
            };
            items.map(|items: Vec<String>| items.into_iter().map(name).collect::<Vec<_>>().join(" ")).unwrap()
        }
        other => other.to_owned(),
    }
}

#[test]
fn layout_1_is_pinned_byte_by_byte() {
    const NOW: u64 = 1_790_000_000_123_456;
    for (policy, costs, id, value) in [
        ("5/minute", &[(NOW, 5)][..], "t5/60", "1790000060123456000"),
        ("5/minute", &[(1_000_000, 1)], "t5/60", "13000000000"),
        ("3/second", &[(1_000_000, 1), (1_000_000, 1)], "t3/1", "1666666002"),
        ("600000000/second", &[(0, 1)], "t600000000/1", "1"),
        ("600000000/second", &[(7, 1)], "t600000000/1", "7001"),
        ("1001/second", &[(NOW, 1)], "t1001/1", "1790000000124455:1"),
        ("api=100/second burst 300", &[(0, 300)], "t=api", "3000000000"),
        ("leaky_bucket: 50/s queue 20", &[(NOW, 2)], "l50/1q20", "1790000000163456000"),
        ("out=leaky_bucket: 50/s queue 20", &[(0, 1)], "l=out", "20000000"),
        ("fixed_window: 10/minute", &[(119_000_000, 4)], "f10/60", "400000001"),
        ("fixed_window: 10/minute", &[(0, 1), (0, 2)], "f10/60", "300000000"),
        ("fixed_window: 10/minute", &[(NOW, 7)], "f10/60", "729833333"),
        (
            "fixed_window: 4294967295/us",
            &[(5, 4_294_967_295)],
            "f4294967295/1us",
            "42949672950000000000000005",
        ),
        ("fixed_window: 10/minute from first", &[(NOW, 9)], "f10/60a", "91790000000123456"),
        ("fixed_window: 10/month in Africa/Cairo", &[(NOW, 3)], "f10/2592000@Africa/Cairo", "31788210000"),
        ("q=fixed_window: 10/week in Etc/GMT+3", &[(NOW, 10)], "f=q/604800@Etc/GMT%2B3", "101789959600"),
        ("q=fixed_window: 10/1500ms from first", &[(0, 1)], "f=q/1500msa", "10000000000000000"),
        ("sliding_window: 10/minute", &[(NOW, 3)], "w10/60", "29833333:3:0"),
        ("sliding_window: 10/minute", &[(59_000_000, 3), (119_000_000, 4)], "w10/60", "1:4:3"),
        ("s=sliding_window: 10/minute", &[(0, 1)], "w=s/60", "0:1:0"),
        ("sliding_log: 10/minute", &[(NOW, 3)], "g10/60", "3 1790000000123456 3"),
        ("sliding_log: 10/minute", &[(5, 1), (6, 2), (60_000_005, 4)], "g10/60", "6 6 2 60000005 4"),
        ("x=sliding_log: 10/minute", &[(0, 1000), (0, 10)], "g=x/60", "10 0 10"),
        ("sliding_log: 10/minute buckets 6", &[(NOW, 3)], "b10/60k6", "179000000:3"),
        ("sliding_log: 10/minute buckets 6", &[(5, 3), (25_000_000, 2)], "b10/60k6", "2:2:0:3"),
        ("x=sliding_log: 10/minute buckets 6", &[(5, 1)], "b=x/60k6", "0:1"),
        ("concurrency: 9 for 30s", &[(NOW, 1)], "c9/30", "LEASE 1790000030123456"),
        ("concurrency: 9 for 30s", &[(0, 1), (5, 3)], "c9/30", "# -1 LEASE 30000000 LEASE:3 30000005"),
        ("x=concurrency: 9 for 30s", &[(5, 1)], "c=x", "LEASE 30000005"),
    ] {
        let (store, prefix) = redis_store();
        let (limiter, clock) = limiter(policy, &store, 0);
        for &(at_us, cost) in costs {
            clock.set_us(at_us).unwrap();
            limiter.acquire("user:42", cost).unwrap();
        }
        assert_eq!(stored(&format!("{prefix}1t:{{user:42}}{id}")), value, "{policy}");
    }
}

#[test]
fn a_block_is_an_entry_of_its_own() {
    let (store, prefix) = redis_store();
    let (limiter, _) = limiter("5/minute", &store, 7);
    limiter.block("k", std::time::Duration::from_secs(60)).unwrap();
    let key = format!("{prefix}1t:{{k}}!");
    assert_eq!(stored(&key), "60000007");
    assert!((86_459_500..=86_460_001).contains(&ttl(&key)), "{}", ttl(&key));
    limiter.unblock("k").unwrap();
    assert_eq!(stored(&key), "none");
}

/// Milliseconds until a key is gone.
fn ttl(key: &str) -> i64 {
    redis::cmd("PTTL").arg(key).query(&mut raw()).unwrap()
}

#[test]
fn every_write_renews_the_life_to_the_drain_and_a_margin() {
    for (policy, id, drain_ms) in [
        ("10/minute", "t10/60", 12_000),
        ("leaky_bucket: 10/minute queue 9", "l10/60q9", 12_000),
        ("fixed_window: 10/minute from first", "f10/60a", 60_000),
        ("sliding_log: 10/minute", "g10/60", 60_000),
        ("concurrency: 10 for 60s", "c10/60", 60_000),
    ] {
        let (store, prefix) = redis_store();
        let real = Limiter::builder(Policy::parse(policy).unwrap())
            .store(store.clone())
            .on_store_failure(mirab::OnStoreFailure::Raise)
            .build()
            .unwrap();
        assert!(real.acquire("k", 2).unwrap().allowed());
        let left = ttl(&format!("{prefix}1:{{k}}{id}"));
        assert!((drain_ms - 500..=drain_ms + 1_001).contains(&left), "{policy}: {left}");

        let (given, _) = limiter(policy, &store, 0);
        assert!(given.acquire("k", 2).unwrap().allowed());
        let left = ttl(&format!("{prefix}1t:{{k}}{id}"));
        assert!((86_400_000 + drain_ms - 500..=86_400_001 + drain_ms).contains(&left), "{policy}: {left}");
    }
    let (store, prefix) = redis_store();
    let (given, clock) =
        limiter("sliding_window: 10/minute; sliding_log: 10/minute buckets 6", &store, 59_000_000);
    assert!(given.acquire("k", 1).unwrap().allowed());
    let lives = |id| ttl(&format!("{prefix}1t:{{k}}{id}")) - 86_400_000;
    assert!((60_500..=61_001).contains(&lives("w10/60")), "{}", lives("w10/60"));
    assert!((60_500..=61_001).contains(&lives("b10/60k6")), "{}", lives("b10/60k6"));
    clock.set_us(60_000_000).unwrap();
    assert!(given.acquire("k", 1).unwrap().allowed());
    assert!((119_500..=120_001).contains(&lives("w10/60")), "{}", lives("w10/60"));
    assert!((69_500..=70_001).contains(&lives("b10/60k6")), "{}", lives("b10/60k6"));
}

const EVERY: &str = "5/minute; leaky_bucket: 5/minute queue 4; fixed_window: 5/minute; sliding_window: 5/minute; \
     sliding_log: 5/minute; sliding_log: 5/minute buckets 6; concurrency: 5 for 60s";

#[test]
fn refusals_questions_and_free_requests_write_nothing() {
    let (store, prefix) = redis_store();
    let (limiter, _) = limiter(&format!("{EVERY}; fixed_window: 3/minute"), &store, 0);
    assert!(limiter.peek("k", 1).unwrap().allowed());
    assert!(limiter.acquire("k", 0).unwrap().allowed());
    assert!(!limiter.acquire("k", 4).unwrap().allowed());
    assert!(limiter.acquire("k", 6).unwrap().never());
    let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{prefix}*")).query(&mut raw()).unwrap();
    assert_eq!(keys, Vec::<String>::new());
}

#[test]
fn what_is_empty_again_leaves_no_key() {
    let (store, prefix) = redis_store();
    let (limiter, clock) =
        limiter("sliding_log: 5/minute; concurrency: 5 for 60s; fixed_window: 5/hour", &store, 0);
    assert!(limiter.acquire("k", 5).unwrap().allowed());
    clock.set_us(60_000_000).unwrap();
    assert!(!limiter.acquire("k", 1).unwrap().allowed());
    let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{prefix}*")).query(&mut raw()).unwrap();
    assert_eq!(keys, [format!("{prefix}1t:{{k}}f5/3600")]);
}

#[test]
fn a_foreign_value_is_an_error_for_that_key_only_and_stays() {
    let (store, prefix) = redis_store();
    let (limiter, _) = limiter(EVERY, &store, 0);
    let key = |id: &str| format!("{prefix}1t:{{k}}{id}");
    for (id, value) in [
        ("t5/60", "hello"),
        ("t5/60", "-5"),
        ("t5/60", "1.5"),
        ("t5/60", "99999999999999999999999"),
        ("l5/60q4", ":1"),
        ("f5/60", "7"),
        ("f5/60", "x00000000"),
        ("f5/60", "9999999999900000000"),
        ("w5/60", "1:2"),
        ("w5/60", "1:2:3:4"),
        ("b5/60k6", "a:1"),
        ("b5/60k6", ""),
        ("t5/60", "nan"),
        ("l5/60q4", "0x10"),
        ("f5/60", "nan00000000"),
        ("w5/60", "1:nan:3"),
        ("b5/60k6", "nan:1"),
        ("g5/60", "text"),
        ("c5/60", "text"),
    ] {
        redis::cmd("SET").arg(key(id)).arg(value).exec(&mut raw()).unwrap();
        let error = limiter.acquire("k", 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{id} {value}: {error}");
        assert!(error.to_string().contains(&key(id)), "{error}");
        assert_eq!(stored(&key(id)), value, "it stays as it was");
        let keys: Vec<String> = redis::cmd("KEYS").arg(format!("{prefix}*")).query(&mut raw()).unwrap();
        assert_eq!(keys, [key(id)], "nothing may be charged beside a value that is not ours");
        redis::cmd("DEL").arg(key(id)).exec(&mut raw()).unwrap();
    }
    for value in ["soon", "nan", "inf", "-1"] {
        redis::cmd("SET").arg(key("!")).arg(value).exec(&mut raw()).unwrap();
        assert_eq!(limiter.acquire("k", 1).unwrap_err().kind(), ErrorKind::StoreCorrupt, "{value}");
        redis::cmd("DEL").arg(key("!")).exec(&mut raw()).unwrap();
    }
    for items in [
        &["x"][..],
        &["1"],
        &["1", "nan", "nan"],
        &["1", "5", "nan"],
        &["inf", "5", "1"],
        &["1", "x", "1"],
        &["1", "5", "x"],
        &["x", "5", "1"],
    ] {
        redis::cmd("RPUSH").arg(key("g5/60")).arg(items).exec(&mut raw()).unwrap();
        let error = limiter.acquire("k", 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{items:?}: {error}");
        assert_eq!(stored(&key("g5/60")), items.join(" "));
        redis::cmd("DEL").arg(key("g5/60")).exec(&mut raw()).unwrap();
    }
    redis::cmd("LPUSH").arg(key("f5/60")).arg("x").exec(&mut raw()).unwrap();
    assert_eq!(limiter.acquire("k", 1).unwrap_err().kind(), ErrorKind::StoreCorrupt);
    assert!(limiter.acquire("other", 1).unwrap().allowed());
    limiter.reset("k").unwrap();
    assert!(limiter.acquire("k", 1).unwrap().allowed());
}
