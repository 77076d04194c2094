//! Shared memory when something is wrong with its file, or with who uses it: each test says what an
//! operator would see.
//!
//! What needs root, a namespace or a mount is said and passed over where they are not to be had.
//! `MIRAB_FUZZ` makes the rounds of damage more.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod actor;
mod anatomy;
mod bounds;
mod creation;
mod damage;
mod groups;
mod lists;
mod mended;
mod namespaces;
mod numbers;
mod removed;
mod workers;
mod wrong;

use std::path::Path;

use mirab::{Error, ErrorKind, Limiter, OnStoreFailure, Policy, Store};

/// A limiter of system time that tells of each failure.
fn limiter(policy: &str, store: &Store) -> Limiter {
    let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(store.clone());
    builder.on_store_failure(OnStoreFailure::Raise).build().unwrap()
}

/// How many of the next tries are admitted, until one is refused.
fn taken(limiter: &Limiter, key: &str) -> u64 {
    (0..).find(|_| !limiter.allow(key, 1).unwrap()).unwrap()
}

/// The store in a file, a small one.
fn open(path: &Path) -> Result<Store, Error> {
    Store::open(&format!("shm://{}?max_keys=64&log_entries=16", path.display()))
}

fn user() -> u32 {
    // SAFETY: it only asks.
    unsafe { libc::geteuid() }
}

fn is_root() -> bool {
    user() == 0
}

/// That a file is refused with such an error, which names it and its owner.
#[track_caller]
fn check_refused(path: &Path, kind: ErrorKind, owner: u32, says: &str) {
    let error = open(path).expect_err(says);
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert!(text.contains(&format!("{path:?}")), "the file is not named: {text}");
    assert!(text.contains(&format!("of user {owner}")), "its owner is not named: {text}");
    assert!(text.contains(says), "{says:?} is not said: {text}");
}
