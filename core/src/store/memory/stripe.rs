//! A stripe: a part of the store's tables under one lock, on cache lines of its own.
//!
//! The lock is a version that is odd while it is held: taking it is one atomic exchange, giving it
//! back a plain store. What lies behind it takes tens of nanoseconds, so those who meet it held wait
//! a little, and sleep when its holder seems not to be running.
//!
//! Beside it lies a copy of the state that last refused a request. Who asks for the same bucket reads it
//! under the version alone: who hammers at a closed door moves no cache line from one processor to
//! another.

use std::cell::UnsafeCell;
use std::hint;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::thread;
use std::time::Duration;

use super::table::Tables;
use crate::algorithm::State;
use crate::clock::{Now, Time};
use crate::fork::Held;
use crate::store::bucket::Fingerprint;

/// How often a held lock is looked at, at first at short intervals, before its holder is thought not to
/// be running.
const FIRST_SPINS: u32 = 16;
const DOUBLINGS: u32 = 5;
const YIELDS: u32 = 20;
const SLEEP: Duration = Duration::from_micros(50);

#[derive(Default)]
#[repr(C, align(128))]
pub(super) struct Stripe {
    version: AtomicU64,
    /// The latest time that was read under it: nobody who comes later decides at an earlier one.
    last: AtomicU64,
    refused: Refused,
    tables: UnsafeCell<Tables>,
}

/// The bucket that last refused, and its state's words. No bucket has the fingerprint zero.
#[derive(Default)]
struct Refused {
    fingerprint: [AtomicU64; 2],
    words: [AtomicU64; 2],
}

// SAFETY: the tables are reached only through the guard, and there is one guard at a time.
unsafe impl Sync for Stripe {}

/// The stripe while it is locked. What was remembered of it is forgotten: it may change now.
pub(super) struct Guard<'a> {
    stripe: &'a Stripe,
    version: u64,
}

impl Stripe {
    #[inline]
    pub fn lock(&self) -> Guard<'_> {
        let version = self.version.load(Ordering::Relaxed);
        if !self.take(version) {
            return self.lock_held();
        }
        let guard = Guard { stripe: self, version };
        guard.forget();
        guard
    }

    #[inline]
    fn take(&self, version: u64) -> bool {
        let taken = |version| {
            self.version.compare_exchange_weak(version, version + 1, Ordering::Acquire, Ordering::Relaxed)
        };
        version & 1 == 0 && taken(version).is_ok()
    }

    /// Waits for the holder: each time twice as long, so that it can do more than one thing before the
    /// cache line moves here; then as one whose holder seems not to be running.
    #[cold]
    fn lock_held(&self) -> Guard<'_> {
        let mut tries = 0;
        loop {
            if tries < DOUBLINGS {
                (0..FIRST_SPINS << tries).for_each(|_| hint::spin_loop());
            } else if tries < YIELDS {
                thread::yield_now();
            } else {
                thread::sleep(SLEEP);
            }
            tries += 1;
            let version = self.version.load(Ordering::Relaxed);
            if self.take(version) {
                let guard = Guard { stripe: self, version };
                guard.forget();
                return guard;
            }
        }
    }

    /// The state of this bucket when it is the one that last refused, and the time that was read for it,
    /// without the lock.
    #[inline]
    pub fn refused(&self, fingerprint: Fingerprint) -> Option<(State, u64)> {
        let version = self.version.load(Ordering::Acquire);
        let [high, low] = &self.refused.fingerprint;
        if version & 1 == 1
            || high.load(Ordering::Relaxed) != fingerprint.high
            || low.load(Ordering::Relaxed) != fingerprint.low
        {
            return None;
        }
        let words = [0, 1].map(|place: usize| self.refused.words[place].load(Ordering::Relaxed));
        let last = self.last.load(Ordering::Relaxed);
        // What was read belongs together when nobody has held the lock meanwhile.
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == version).then(|| (State::from_words(words), last))
    }
}

impl Guard<'_> {
    /// The time to decide at: what was read, but under one lock never earlier than before.
    #[inline]
    pub fn time(&self, time: Time, read: Now) -> Now {
        let last = self.stripe.last.load(Ordering::Relaxed);
        if time.given().is_some() {
            return read;
        }
        if read.steady >= last {
            self.stripe.last.store(read.steady, Ordering::Relaxed);
        }
        read.at_least(last)
    }

    /// Remembers that this bucket's state refused; good until the lock is taken again.
    #[inline]
    pub fn remember(&self, fingerprint: Fingerprint, words: Option<[u64; 2]>) {
        let Some(words) = words else { return };
        let Refused { fingerprint: [high, low], words: places } = &self.stripe.refused;
        high.store(fingerprint.high, Ordering::Relaxed);
        low.store(fingerprint.low, Ordering::Relaxed);
        places[0].store(words[0], Ordering::Relaxed);
        places[1].store(words[1], Ordering::Relaxed);
    }

    #[inline]
    fn forget(&self) {
        // Readers that see one of the stores below also see that the version was odd.
        fence(Ordering::Release);
        self.stripe.refused.fingerprint[0].store(0, Ordering::Relaxed);
        self.stripe.refused.fingerprint[1].store(0, Ordering::Relaxed);
    }
}

impl Deref for Guard<'_> {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        // SAFETY: the lock is held, by this guard alone.
        unsafe { &*self.stripe.tables.get() }
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Tables {
        // SAFETY: the lock is held, by this guard alone.
        unsafe { &mut *self.stripe.tables.get() }
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.stripe.version.store(self.version + 2, Ordering::Release);
    }
}

impl Held for Guard<'_> {}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::algorithm::interval::Span;
    use crate::algorithm::token_bucket::Tat;

    fn state(whole: u64) -> State {
        State::Bucket(Tat(Span { whole, fraction: whole as u32 }))
    }

    #[test]
    fn what_was_remembered_is_whole_and_never_older_than_the_lock() {
        let stripe = Stripe::default();
        let fingerprint = Fingerprint { high: 1, low: 2 };
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..20_000 {
                    let guard = stripe.lock();
                    guard.time(Time::STORE, Now { steady: round, wall: round });
                    guard.remember(fingerprint, state(round).words());
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut newest = 0;
                    for _ in 0..20_000 {
                        let Some((seen, last)) = stripe.refused(fingerprint) else { continue };
                        assert_eq!(seen, state(last));
                        assert!(last >= newest);
                        newest = last;
                    }
                });
            }
        });
        assert!(stripe.refused(fingerprint).is_some());
        drop(stripe.lock());
        assert!(stripe.refused(fingerprint).is_none());
    }

    #[test]
    fn one_at_a_time_holds_it() {
        let stripe = Stripe::default();
        let held = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..5_000 {
                        let _guard = stripe.lock();
                        assert!(!held.swap(true, Ordering::Relaxed));
                        if round % 100 == 0 {
                            thread::yield_now();
                        }
                        held.store(false, Ordering::Relaxed);
                    }
                });
            }
        });
    }

    #[test]
    fn time_never_falls_under_it_but_a_given_one_may() {
        let stripe = Stripe::default();
        let guard = stripe.lock();
        let at = |us| Now { steady: us, wall: us + 5 };
        assert_eq!(guard.time(Time::STORE, at(10)), at(10));
        assert_eq!(guard.time(Time::STORE, at(8)), at(10));
        let given = Time::given_us(3).unwrap();
        assert_eq!(guard.time(given, at(3)), at(3));
        assert_eq!(guard.time(Time::STORE, at(11)), at(11));
    }
}
