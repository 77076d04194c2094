//! What a key costs on Redis: `used_memory` over many keys with 16-byte names.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod common;

use std::thread;

use common::{raw, server};
use mirab::{Limiter, Policy, Store};

fn used_memory() -> u64 {
    let info: String = redis::cmd("INFO").arg("memory").query(&mut raw()).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    line.trim().parse().unwrap()
}

fn keys() -> u64 {
    std::env::var("MIRAB_KEYS").map_or(60_000, |text| text.parse().unwrap())
}

/// Bytes per unit of `units` when each of `keys` keys acquires so many times.
fn bytes(policy: &str, keys: u64, times: u64) -> f64 {
    redis::cmd("FLUSHALL").exec(&mut raw()).unwrap();
    // The default prefix: names of at most 30 characters, as users have them.
    let store = Store::open(&format!("{}?timeout_ms=5000&prefix=m", server())).unwrap();
    let limiter = Limiter::builder(Policy::parse(policy).unwrap())
        .store(store)
        .on_store_failure(mirab::OnStoreFailure::Raise)
        .build()
        .unwrap();
    limiter.acquire("warm", 1).unwrap();
    redis::cmd("FLUSHALL").exec(&mut raw()).unwrap();
    let before = used_memory();
    thread::scope(|scope| {
        for part in 0..4 {
            let limiter = &limiter;
            scope.spawn(move || {
                for key in (part..keys).step_by(4) {
                    for _ in 0..times {
                        assert!(limiter.allow(format!("{key:016}"), 1).unwrap());
                    }
                }
            });
        }
    });
    let size: u64 = redis::cmd("DBSIZE").query(&mut raw()).unwrap();
    assert_eq!(size, keys);
    (used_memory() - before) as f64 / keys as f64
}

/// One test, since others must not write meanwhile: it has a server for itself.
#[test]
fn bytes_per_key() {
    let keys = keys();
    for (policy, most) in [
        ("9/day", 140.0),
        ("leaky_bucket: 9/day", 140.0),
        ("fixed_window: 9/day", 140.0),
        ("fixed_window: 9/day from first", 140.0),
        ("sliding_window: 9/day", 175.0),
    ] {
        let each = bytes(policy, keys, 1);
        println!("{policy}: {each:.1} bytes a key over {keys} keys");
        assert!(each <= most, "{policy}: {each:.1} bytes a key");
    }
    let (few, many) = (keys / 1_000, 1_000);
    let log = "sliding_log: 1000/day";
    let each = (bytes(log, few, many) - bytes(log, few, 1)) / (many - 1) as f64;
    println!("{log}: {each:.2} bytes a remembered request");
    assert!(each <= 15.0, "{log}: {each:.2} bytes a remembered request");
}
