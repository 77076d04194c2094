//! A word of the shared file: every access is atomic, so that whatever other processes do is no more
//! than an unexpected number.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
#[repr(transparent)]
pub(super) struct Word(AtomicU64);

impl Word {
    #[inline]
    pub fn get(&self) -> u64 {
        turn(false);
        self.0.load(Ordering::Relaxed)
    }

    /// Reads it before whatever is read after.
    #[inline]
    pub fn get_first(&self) -> u64 {
        turn(false);
        self.0.load(Ordering::Acquire)
    }

    /// Writes it after whatever was written before, for everybody who looks, and for who comes after a kill.
    #[inline]
    pub fn set(&self, value: u64) {
        turn(true);
        if !is_dead() {
            self.0.store(value, Ordering::Release);
        }
    }

    /// Writes it if it still is `old`.
    #[inline]
    pub fn exchange(&self, old: u64, value: u64) -> bool {
        turn(true);
        !is_dead() && self.0.compare_exchange(old, value, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
use super::turns::{is_dead, turn};

/// In tests other processes may run here, or this one end.
#[cfg(not(test))]
#[inline(always)]
fn turn(_changes: bool) {}

#[cfg(not(test))]
#[inline(always)]
fn is_dead() -> bool {
    false
}
