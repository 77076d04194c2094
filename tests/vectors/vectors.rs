//! Plays the published cases through the public interface, on every store.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use mirab::{Anchor, Limit, Limiter, ManualClock, Store};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Case {
    name: String,
    limit: Given,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Given {
    algorithm: String,
    limit: u64,
    period_us: u64,
    capacity: Option<u64>,
    queue: Option<u64>,
    anchor: Option<String>,
}

#[derive(Deserialize)]
struct Step {
    at_us: u64,
    cost: u64,
    allowed: bool,
    remaining: u64,
    reset_after_us: u64,
    retry_after_us: Value,
    #[serde(default)]
    delay_us: u64,
}

fn limit(given: &Given) -> Limit {
    let per = Duration::from_micros(given.period_us);
    let anchor = match given.anchor.as_deref() {
        None => Anchor::Clock,
        Some("first") => Anchor::First,
        Some(other) => panic!("anchor {other}"),
    };
    match given.algorithm.as_str() {
        "token_bucket" => {
            let limit = Limit::token_bucket(given.limit, per).unwrap();
            given.capacity.map_or(limit.clone(), |capacity| limit.with_capacity(capacity).unwrap())
        }
        "leaky_bucket" => Limit::leaky_bucket(given.limit, per, given.queue.unwrap()).unwrap(),
        "sliding_window" => Limit::sliding_window(given.limit, per).unwrap(),
        "sliding_log" => Limit::sliding_log(given.limit, per).unwrap(),
        "fixed_window" => Limit::fixed_window(given.limit, per, anchor).unwrap(),
        other => panic!("algorithm {other}"),
    }
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let cases: Vec<Case> = files
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .map(|path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap())
        .collect();
    assert!(!cases.is_empty());
    cases
}

fn play(case: &Case, store: Store) {
    let clock = ManualClock::default();
    let limiter = Limiter::builder(limit(&case.limit))
        .store(store)
        .clock(clock.clone())
        .on_store_failure(mirab::OnStoreFailure::Raise)
        .build()
        .unwrap();
    for (index, step) in case.steps.iter().enumerate() {
        clock.set_us(step.at_us).unwrap();
        let decision = limiter.acquire(&case.name, step.cost).unwrap();
        let (retry_after, never) = match &step.retry_after_us {
            Value::String(never) if never == "never" => (None, true),
            number => (number.as_u64().filter(|&us| us > 0).map(Duration::from_micros), false),
        };
        let at = format!("{} step {index}: {decision:?}", case.name);
        assert_eq!(decision.allowed(), step.allowed, "{at}");
        assert_eq!(decision.remaining(), step.remaining, "{at}");
        assert_eq!(decision.reset_after(), Duration::from_micros(step.reset_after_us), "{at}");
        assert_eq!(decision.retry_after(), retry_after, "{at}");
        assert_eq!(decision.never(), never, "{at}");
        assert_eq!(decision.delay(), Duration::from_micros(step.delay_us), "{at}");
        assert_eq!(decision.used() + decision.remaining(), decision.limit(), "{at}");
    }
}

#[test]
fn every_case_on_memory() {
    for case in cases() {
        play(&case, Store::open("memory:").unwrap());
    }
}

/// A file of its own, which is removed at its end.
#[cfg(feature = "shm")]
struct File(std::path::PathBuf);

#[cfg(feature = "shm")]
impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(feature = "shm")]
#[test]
fn every_case_in_shared_memory() {
    for (number, case) in cases().into_iter().enumerate() {
        let folder = Path::new(if cfg!(target_os = "linux") { "/dev/shm" } else { "/tmp" });
        let file = File(folder.join(format!("mirab-vectors-{}-{number}", std::process::id())));
        let uri = format!("shm://{}?max_keys=64&timeout_ms=5000", file.0.display());
        play(&case, Store::open(&uri).unwrap());
    }
}

#[test]
fn every_case_on_redis() {
    let server = std::env::var("MIRAB_TEST_REDIS").expect("MIRAB_TEST_REDIS names a private Redis");
    let prefix = format!("vectors-{}", std::process::id());
    for case in cases() {
        play(&case, Store::open(&format!("{server}?timeout_ms=5000&prefix={prefix}")).unwrap());
    }
}
