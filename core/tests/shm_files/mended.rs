//! Damage of one kind each, and that it is over once it was met.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use mirab::{ErrorKind, Limiter, Store};

use crate::anatomy::control;
use crate::common::shm::Shared;
use crate::damage::Vandal;
use crate::limiter;

/// Nobody can be this one: its place is the last.
const DEAD: u64 = 4_096;

/// A file of so many keys, and who damages it.
fn made(max_keys: u64) -> (Shared, Store, Vandal) {
    let shared = Shared::new("mended");
    let store =
        Store::open(&shared.uri(&format!("?max_keys={max_keys}&log_entries=16&timeout_ms=50"))).unwrap();
    for policy in ["5/day", "sliding_log: 5/day"] {
        let limiter = limiter(policy, &store);
        (0..20_u64).for_each(|key| assert!(limiter.allow(key.to_le_bytes(), 2).unwrap()));
    }
    let vandal = Vandal::new(&shared, 1);
    (shared, store, vandal)
}

impl Vandal {
    fn control(&self, part: usize, which: usize) -> usize {
        self.anatomy.control(part).start + which
    }

    /// As if somebody had died while he held it.
    fn hold(&self, part: usize) -> u64 {
        let lock = self.control(part, control::LOCK);
        let version = self.get(lock) >> 16 << 16;
        self.set(lock, version | DEAD);
        version
    }
}

/// That a new key has its number and no more, after some errors at most.
#[track_caller]
fn check_counts(limiter: &Limiter, key: &str) {
    let mut errors = 0;
    let mut admitted = 0;
    for _ in 0..20 {
        match limiter.allow(key, 1) {
            Ok(allowed) => admitted += u32::from(allowed),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{error}");
                errors += 1;
            }
        }
    }
    assert!(admitted == 5 && errors <= 2, "{admitted} admitted, {errors} errors");
}

/// Does it apart, since it may never end.
fn ends(act: impl FnOnce() + Send + 'static) {
    let (told, hears) = mpsc::channel();
    let thread = thread::spawn(move || {
        act();
        told.send(()).unwrap();
    });
    match hears.recv_timeout(Duration::from_secs(30)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it never ends"),
        _ => thread.join().unwrap(),
    }
}

#[test]
fn room_for_lists_that_seems_to_be_taken() {
    let (_shared, store, vandal) = made(64);
    vandal.anatomy.marks(0).for_each(|at| vandal.set(at, u64::MAX));
    let limiter = limiter("sliding_log: 5/day", &store);
    // Who owes more takes the place of those that are there, and then finds that there is more.
    for key in 0..16 {
        let mut errors = 0;
        while limiter.allow(format!("new {key}"), 5).is_err() {
            errors += 1;
            assert!(errors < 3, "{key} cannot be decided");
        }
        assert!(!limiter.allow(format!("new {key}"), 1).unwrap(), "{key} was not counted");
    }
}

#[test]
fn room_for_lists_without_a_list() {
    let shared = Shared::new("no-list");
    let store = Store::open(&shared.uri("?max_keys=64&log_entries=16")).unwrap();
    let vandal = Vandal::new(&shared, 1);
    vandal.anatomy.marks(0).for_each(|at| vandal.set(at, u64::MAX));
    check_counts(&limiter("sliding_log: 5/day", &store), "new");
}

#[test]
fn a_part_that_seems_to_be_full() {
    for used in [64, 65, u64::MAX] {
        let shared = Shared::new("full");
        let store = Store::open(&shared.uri("?max_keys=64&log_entries=16")).unwrap();
        let vandal = Vandal::new(&shared, 1);
        vandal.set(vandal.control(0, control::USED), used);
        check_counts(&limiter("5/day", &store), "new");
        assert_eq!(limiter("5/day", &store).stats().keys, 1);
    }
}

#[test]
fn no_slot_that_seems_to_be_free() {
    for free in [0, 1 << 40, u64::MAX] {
        let (_shared, store, vandal) = made(64);
        vandal.set(vandal.control(0, control::FREE), free);
        let limiter = limiter("5/day", &store);
        check_counts(&limiter, "new");
        let left = (0..20_u64).map(|key| limiter.peek(key.to_le_bytes(), 1).unwrap().remaining());
        assert!(left.into_iter().all(|left| left == 3), "what was sound is still there");
    }
}

/// What is free is somebody's: two states would share it.
#[test]
fn a_slot_that_only_seems_to_be_free() {
    for slot in 1..=20 {
        let (_shared, store, vandal) = made(64);
        vandal.set(vandal.control(0, control::FREE), slot);
        let limiter = limiter("5/day", &store);
        check_counts(&limiter, "new");
        let left = (0..20_u64).map(|key| limiter.peek(key.to_le_bytes(), 1).unwrap().remaining());
        assert!(left.into_iter().all(|left| left == 3), "slot {slot} was shared");
    }
}

/// No chain leads to any state: nothing of them is left, and all of their room.
#[test]
fn slots_that_no_chain_leads_to() {
    let (_shared, store, vandal) = made(64);
    vandal.anatomy.heads(0).for_each(|at| vandal.set(at, 0));
    let limiter = limiter("5/day", &store);
    for key in 0..64 {
        let mut errors = 0;
        while limiter.allow(format!("new {key}"), 3).is_err() {
            errors += 1;
            assert!(errors < 3, "{key} cannot be decided");
        }
        assert!(!limiter.allow(format!("new {key}"), 3).unwrap(), "{key} was not counted");
    }
}

/// Each chain leads to a slot that leads to itself, of another chain or of none.
#[test]
fn chains_that_lead_round() {
    for kind in [0, 3, 7, 15] {
        let (_shared, store, vandal) = made(64);
        let slots = vandal.anatomy.slots(0);
        for (count, at) in vandal.anatomy.heads(0).enumerate() {
            let slot = count % vandal.anatomy.slots;
            vandal.set(at, slot as u64 + 1);
            vandal.set(slots.start + 4 * slot, kind << 60);
            vandal.set(slots.start + 4 * slot + 3, slot as u64 + 1);
        }
        vandal.hold(0);
        ends(move || {
            let limiter = limiter("5/day", &store);
            for key in 0..64_u64 {
                let _ = limiter.allow(key.to_le_bytes(), 1);
                assert_eq!(limiter.reset(key.to_le_bytes()), Ok(()));
                assert!(limiter.allow(key.to_le_bytes(), 1).is_ok());
            }
        });
    }
}

/// Of a step over several parts, what cannot be: each is to wait for another one.
#[test]
fn parts_that_wait_for_each_other() {
    for is_held in [false, true] {
        let (_shared, store, vandal) = made(130);
        let parts = vandal.anatomy.parts;
        assert!(parts >= 2);
        for part in 0..parts {
            let lead = (part + 1) % parts;
            vandal.set(vandal.control(part, control::LEAD), lead as u64 + 1);
            vandal.set(vandal.control(part, control::LEAD_VERSION), 77);
            vandal.set(vandal.control(part, control::OPEN), 77);
            if is_held || part == 0 {
                vandal.hold(part);
            }
        }
        ends(move || {
            let limiter = limiter("5/day", &store);
            // New ones, for which a part must be held.
            (20..40_u64).for_each(|key| assert!(limiter.allow(key.to_le_bytes(), 5).unwrap()));
            (20..40_u64).for_each(|key| assert!(!limiter.allow(key.to_le_bytes(), 1).unwrap()));
        });
    }
}

/// What only fails sees, too, that the damaged file was removed.
#[test]
fn who_gets_only_errors_sees_that_the_file_was_removed() {
    let (shared, store, vandal) = made(64);
    let lock = vandal.control(0, control::LOCK);
    // This process itself, which lives: nobody gives it back.
    vandal.set(lock, vandal.get(lock) | 1);
    let (limiter, lists) = (limiter("5/day", &store), limiter("sliding_log: 5/day", &store));
    let failed = |kind| move |error: &mirab::Error| error.kind() == kind;
    assert!(lists.allow("key", 1).is_err_and(|error| failed(ErrorKind::StoreTimeout)(&error)));
    assert!(limiter.reset("key").is_err());
    std::fs::remove_file(&shared.path).unwrap();
    let begun = Instant::now();
    while limiter.reset("key").is_err() {
        assert!(begun.elapsed() < Duration::from_secs(15), "the new file is not found");
    }
    assert!(shared.path.exists());
    check_counts(&lists, "key");
}
