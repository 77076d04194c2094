//! A flood of fresh keys through a memory store. Alone in its process, whose memory it measures.
//!
//! `MIRAB_FRESH_KEYS` lengthens the run.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod common;

use std::fs;
use std::time::Instant;

use common::limiter;
use mirab::Store;

const MAX_KEYS: u64 = 100_000;
const INDEBTED: u64 = 10_000;

fn fresh_keys() -> u64 {
    std::env::var("MIRAB_FRESH_KEYS").map_or(500_000, |text| text.parse().unwrap())
}

fn resident_mib() -> f64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0 / 1048576.0
}

#[test]
fn fresh_keys_fill_nothing_and_free_nobody() {
    let store = Store::open(&format!("memory:?max_keys={MAX_KEYS}")).unwrap();
    let (limiter, clock) = limiter("10/hour", &store, 1_000_000);
    for key in 0..INDEBTED {
        assert!(limiter.allow(format!("indebted {key}"), 10).unwrap());
    }
    let send = |from: u64, to: u64| {
        let begun = Instant::now();
        for key in from..to {
            clock.advance_us(1).unwrap();
            assert!(limiter.allow(format!("fresh {key:012}"), 1).unwrap());
        }
        begun.elapsed() / (to - from) as u32
    };
    let filling = send(0, MAX_KEYS - INDEBTED);
    let (before, keys) = (resident_mib(), fresh_keys());
    let full = send(MAX_KEYS, MAX_KEYS + keys);
    let grown = resident_mib() - before;
    let stats = limiter.stats();
    println!(
        "{keys} fresh keys through a store of {MAX_KEYS}: {filling:?} a key while it fills, {full:?} when it is full, \
         {grown:.1} MiB more, {} kept, {} evicted",
        stats.keys, stats.evicted
    );
    assert!(stats.keys <= MAX_KEYS, "{stats:?}");
    assert!(stats.evicted >= keys, "{stats:?}");
    assert!(grown < 8.0, "{grown:.1} MiB more");
    assert!(full < filling * 20, "{full:?} after {filling:?}");
    for key in 0..INDEBTED {
        assert!(!limiter.allow(format!("indebted {key}"), 1).unwrap(), "{key} was freed");
    }
}
