//! What the integration tests share.
#![allow(dead_code, missing_docs)]

pub mod certificates;
pub mod load;
pub mod relay;
pub mod server;
pub mod shm;
pub mod turning;

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use mirab::{Limiter, ManualClock, OnStoreFailure, Policy, Store};

/// The address of the private Redis of this run.
pub fn server() -> String {
    std::env::var("MIRAB_TEST_REDIS")
        .expect("MIRAB_TEST_REDIS names a private Redis: see scripts/with-redis.sh")
}

/// A prefix that no other test uses, nor an earlier run.
pub fn fresh_prefix() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("t{nanos}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A store of its own on the private Redis; slow machines decide nothing here.
pub fn redis_store() -> (Store, String) {
    let prefix = fresh_prefix();
    (Store::open(&format!("{}?timeout_ms=5000&prefix={prefix}", server())).unwrap(), prefix)
}

/// A limiter on `store` and the clock that it goes by.
pub fn limiter(policy: &str, store: &Store, at_us: u64) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(at_us).unwrap();
    let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(store.clone());
    (builder.clock(clock.clone()).on_store_failure(OnStoreFailure::Raise).build().unwrap(), clock)
}

/// Says what was measured, also where the output of tests that pass is kept back.
pub fn say(what: std::fmt::Arguments<'_>) {
    std::io::stdout().write_all(format!("{what}\n").as_bytes()).unwrap();
}

/// A number that the environment may set.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A connection to the private Redis, to look behind the store.
pub fn raw() -> redis::Connection {
    redis::Client::open(server()).unwrap().get_connection().unwrap()
}

/// A small generator (SplitMix64): the same seed gives the same run on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `below` - 1.
    pub fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}
