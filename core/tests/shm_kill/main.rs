//! Shared memory under processes that are killed, stopped and forked at any instant: nobody hangs, nothing
//! is admitted beyond a limit, and of each killed process at most the one decision is lost that it was at.
//!
//! `MIRAB_KILL_SECONDS` is how long the hammering takes, all scenes together.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod crew;
mod descriptors;
mod endings;
mod evicting;
mod execs;
mod forked;
mod hammer;
mod mixed;
mod stopped;
mod tally;

use std::time::{Duration, Instant};

use mirab::{Limiter, OnStoreFailure, Policy, Store};
use tally::Tally;

type Act = fn(&Role);

/// What a worker process does, by its name.
const ROLES: &[(&str, Act)] = &[
    ("hammers", hammer::hammers),
    ("evicts", evicting::evicts),
    ("leases", mixed::leases),
    ("gives_back", mixed::gives_back),
    ("anything", mixed::anything),
    ("come_at_once", descriptors::come_at_once),
    ("opens_and_closes", descriptors::opens_and_closes),
    #[cfg(target_os = "linux")]
    ("without_its_first", descriptors::without_its_first),
    ("forks", forked::forks),
    ("leaves_a_child", forked::leaves_a_child),
    ("execs", execs::execs),
    ("becomes_another", execs::becomes_another),
    ("panics", endings::panics),
    ("exits", endings::exits),
    ("faults", endings::faults),
];

/// What this process was started for.
pub struct Role {
    pub uri: String,
    pub tally: Tally,
    pub policy: String,
    /// How many keys there are, one after the other.
    pub keys: u64,
}

impl Role {
    pub fn limiter(&self) -> Limiter {
        limiter(&self.policy, &self.uri)
    }
}

/// Every worker process is this test alone; for the test itself there is nothing to do.
#[test]
fn worker() {
    let Ok(text) = std::env::var(crew::ROLE) else { return };
    let [name, uri, tally, policy, keys] = text.split('|').collect::<Vec<_>>()[..] else {
        panic!("a role: {text}")
    };
    let act = ROLES.iter().find(|(known, _)| *known == name).expect("a role").1;
    let tally = Tally::open(tally.as_ref());
    act(&Role { uri: uri.into(), tally, policy: policy.into(), keys: keys.parse().unwrap() });
}

/// A limiter that tells of each failure.
pub fn limiter(policy: &str, uri: &str) -> Limiter {
    let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(Store::open(uri).unwrap());
    builder.on_store_failure(OnStoreFailure::Raise).build().unwrap()
}

/// A part of the time that all scenes have together.
pub fn share(of: u32) -> Duration {
    Duration::from_secs(common::number("MIRAB_KILL_SECONDS", 10)) / of
}

/// Waits for something that others do.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it hangs: {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
