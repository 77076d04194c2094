//! What goes wrong with a store in this machine: told once when it begins, and once when it is over.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::fork::lock;
use crate::health::Health;
use crate::{Error, ErrorKind};

/// Locks whose holders were waited for in vain: nobody waits so long again, while they are the same.
#[derive(Default)]
pub(super) struct Stuck([AtomicU64; 8]);

impl Stuck {
    fn of(&self, place: usize, lock: u64) -> (&AtomicU64, u64) {
        let known = lock ^ (place as u64).rotate_left(32);
        (&self.0[place / size_of::<u64>() % self.0.len()], known.max(1))
    }

    pub fn knows(&self, place: usize, lock: u64) -> bool {
        let (slot, known) = self.of(place, lock);
        slot.load(Ordering::Relaxed) == known
    }

    pub fn learn(&self, place: usize, lock: u64) {
        let (slot, known) = self.of(place, lock);
        slot.store(known, Ordering::Relaxed);
    }
}

/// How the store is, as this process sees it.
#[derive(Default)]
pub(super) struct Trouble {
    /// The part that does not decide, one more than its place; 0 for none.
    part: AtomicUsize,
    opened: AtomicU64,
    last: Mutex<Option<(ErrorKind, String, Instant)>>,
}

impl Trouble {
    /// A part failed; true when all was well before.
    pub fn begins(&self, part: usize, error: &Error) -> bool {
        if !matches!(
            error.kind(),
            ErrorKind::StoreTimeout | ErrorKind::StoreCorrupt | ErrorKind::StoreUnavailable
        ) {
            return false;
        }
        *lock(&self.last) = Some((error.kind(), error.to_string(), Instant::now()));
        let begins = self.part.compare_exchange(0, part + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        self.opened.fetch_add(u64::from(begins), Ordering::Relaxed);
        begins
    }

    /// Whether this part was the one that failed, which has just decided again.
    #[inline]
    pub fn is_over(&self, part: usize) -> bool {
        let failed = self.part.load(Ordering::Relaxed);
        failed != 0
            && failed == part + 1
            && self.part.compare_exchange(failed, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// All is well again, with another file.
    pub fn is_past(&self) {
        self.part.store(0, Ordering::Relaxed);
    }

    pub fn tell(&self, health: &mut Health) {
        let fails = self.part.load(Ordering::Relaxed) != 0;
        health.ok = !fails;
        health.circuit = if fails { "open" } else { "closed" };
        health.opened = self.opened.load(Ordering::Relaxed);
        if let Some((kind, text, at)) = lock(&self.last).as_ref() {
            health.last_error = Some((*kind, text.clone()));
            health.last_error_age = Some(at.elapsed());
        }
    }

    /// What a fork must find whole.
    pub fn last(&self) -> &Mutex<impl Sized> {
        &self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_begins_it_and_the_part_that_failed_ends_it() {
        let trouble = Trouble::default();
        let error = |kind| Error::new(kind, "why");
        assert!(!trouble.begins(3, &error(ErrorKind::StoreFull)));
        assert!(trouble.begins(3, &error(ErrorKind::StoreTimeout)));
        assert!(!trouble.begins(5, &error(ErrorKind::StoreCorrupt)));
        let mut health = Health::local("shm:x");
        trouble.tell(&mut health);
        assert_eq!((health.ok, health.circuit, health.opened), (false, "open", 1));
        assert_eq!(health.last_error, Some((ErrorKind::StoreCorrupt, "why".to_owned())));
        assert!(!trouble.is_over(5) && trouble.is_over(3) && !trouble.is_over(3));
        trouble.tell(&mut health);
        assert!(health.ok);
    }

    #[test]
    fn a_lock_is_stuck_in_its_place_and_version_only() {
        let stuck = Stuck::default();
        assert!(!stuck.knows(64, 0));
        stuck.learn(64, 0x1_0007);
        assert!(stuck.knows(64, 0x1_0007));
        assert!(!stuck.knows(64, 0x2_0007) && !stuck.knows(72, 0x1_0007) && !stuck.knows(128, 0x1_0007));
    }
}
