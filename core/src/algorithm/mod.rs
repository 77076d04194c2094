//! The algorithms: pure functions over integers, one file each.
//!
//! A store keeps a [`State`] for each limit and key. What an algorithm needs of it at one instant
//! is [`Seen`]: a few numbers, the same whether they come from memory or from a script elsewhere.
//! Everything that is told (what fits, what is left, how long to wait) follows from those.

#[cfg(feature = "calendar")]
pub(crate) mod calendar;
pub(crate) mod concurrency;
pub(crate) mod fixed_window;
pub(crate) mod interval;
pub(crate) mod leaky_bucket;
pub(crate) mod list;
mod share;
pub(crate) mod sliding_buckets;
pub(crate) mod sliding_log;
pub(crate) mod sliding_window;
mod state;
mod tally;
pub(crate) mod token_bucket;

use crate::clock::Now;
use crate::key::MAX_COST;
use crate::receipt::{Lease as LeaseId, Receipt};
use concurrency::{Concurrency, Lease};
use fixed_window::{FixedWindow, Window};
pub(crate) use interval::MAX_SPAN_US;
use leaky_bucket::LeakyBucket;
use sliding_buckets::SlidingBuckets;
use sliding_log::SlidingLog;
use sliding_window::{Pair, SlidingWindow};
pub(crate) use state::State;
pub(crate) use tally::Tally;
use token_bucket::{Tat, TokenBucket};

/// An algorithm with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Algorithm {
    TokenBucket(TokenBucket),
    LeakyBucket(LeakyBucket),
    FixedWindow(FixedWindow),
    SlidingWindow(SlidingWindow),
    SlidingLog(SlidingLog),
    SlidingBuckets(SlidingBuckets),
    Concurrency(Concurrency),
    Deny,
    Unlimited,
}

/// What a state says at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    /// Not the state, but that its key is blocked until then.
    Blocked(u64),
    Bucket(Tat),
    Window(Window),
    Pair(Pair),
    Tally(Tally),
}

/// What a stored state was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing to mend.
    Sound,
    /// A list whose head is over: whoever takes drops it.
    Aged,
    /// From the future: it was read as if made now, and whoever takes writes that back.
    Future,
}

/// What [`Algorithm::decide`] made of a state.
pub(crate) struct Decided {
    pub admitted: bool,
    pub found: Found,
    /// After taking, when admitted.
    pub seen: Seen,
}

/// What is left at one instant; microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    pub used: u64,
    pub remaining: u64,
    /// Until nothing is owed.
    pub reset_after: u64,
    /// Until `remaining` grows by one; 0 when it cannot.
    pub next_after: u64,
}

impl Algorithm {
    /// The largest cost that can ever pass.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::TokenBucket(it) => it.capacity,
            Self::LeakyBucket(it) => it.bucket.capacity,
            Self::FixedWindow(it) => it.limit,
            Self::SlidingWindow(it) => it.limit,
            Self::SlidingLog(it) => it.limit,
            Self::SlidingBuckets(it) => it.limit,
            Self::Concurrency(it) => it.limit,
            Self::Deny => 0,
            Self::Unlimited => MAX_COST,
        }
    }

    /// Whether it is decided by wall time.
    #[cfg(feature = "redis")]
    pub fn reads_wall(&self) -> bool {
        matches!(self, Self::FixedWindow(window) if window.reads_wall())
    }

    /// Whether anything is stored for it.
    #[cfg(feature = "redis")]
    pub fn has_state(&self) -> bool {
        !matches!(self, Self::Deny | Self::Unlimited)
    }

    /// What a stored state says now, as far as a request of `cost` needs it.
    pub fn see(&self, stored: Option<&State>, now: Now, cost: u64) -> (Seen, Found) {
        let steady = now.steady;
        match (self, stored) {
            (
                Self::TokenBucket(it) | Self::LeakyBucket(LeakyBucket { bucket: it }),
                Some(State::Bucket(tat)),
            ) => {
                let (tat, found) = it.read(*tat, steady);
                (Seen::Bucket(tat), found)
            }
            (Self::FixedWindow(it), Some(State::Window(window))) => {
                let (window, found) = it.read(*window, it.time(now));
                (Seen::Window(window), found)
            }
            (Self::SlidingWindow(it), Some(State::Pair(pair))) => {
                let (pair, found) = it.read(pair.unpacked(), steady);
                (Seen::Pair(pair), found)
            }
            (Self::SlidingLog(it), Some(State::Log(log))) => {
                let (tally, found) = it.read(log, steady, cost);
                (Seen::Tally(tally), found)
            }
            (Self::SlidingBuckets(it), Some(State::Buckets(buckets))) => {
                let (tally, found) = it.read(buckets, steady, cost);
                (Seen::Tally(tally), found)
            }
            (Self::Concurrency(it), Some(State::Leases(leases))) => {
                let (tally, found) = it.read(leases, steady, cost);
                (Seen::Tally(tally), found)
            }
            _ => (self.nothing(now), Found::Sound),
        }
    }

    /// What is seen where nothing is stored.
    pub fn nothing(&self, now: Now) -> Seen {
        match self {
            Self::TokenBucket(_) | Self::LeakyBucket(_) => Seen::Bucket(Tat::default()),
            Self::FixedWindow(_) => Seen::Window(Window::default()),
            Self::SlidingWindow(it) => Seen::Pair(it.empty(now.steady)),
            Self::SlidingLog(_) | Self::SlidingBuckets(_) | Self::Concurrency(_) => {
                Seen::Tally(Tally::default())
            }
            Self::Deny | Self::Unlimited => Seen::Nothing,
        }
    }

    /// Whether `cost` fits now.
    pub fn admits(&self, seen: &Seen, now: Now, cost: u64) -> bool {
        if cost == 0 {
            return *self != Self::Deny;
        }
        match (self, seen) {
            (Self::TokenBucket(it) | Self::LeakyBucket(LeakyBucket { bucket: it }), Seen::Bucket(tat)) => {
                it.admits(*tat, now.steady, cost)
            }
            (Self::FixedWindow(it), Seen::Window(window)) => it.admits(window, cost),
            (Self::SlidingWindow(it), Seen::Pair(pair)) => it.admits(pair, now.steady, cost),
            (_, Seen::Tally(tally)) => {
                u64::from(tally.used).checked_add(cost).is_some_and(|sum| sum <= self.capacity())
            }
            (Self::Unlimited, _) => true,
            _ => false,
        }
    }

    /// How much of `cost` can be taken without asking: at most to empty.
    pub fn room(&self, seen: &Seen, now: Now, cost: u64) -> u64 {
        match seen {
            // A part of a token is taken, too.
            Seen::Bucket(_) => cost.min(self.capacity()),
            _ => cost.min(self.measure(seen, now).remaining),
        }
    }

    /// What is seen after taking a `cost` that fits, or that there is room for.
    pub fn charged(&self, seen: Seen, now: Now, cost: u64) -> Seen {
        match (self, seen) {
            (Self::TokenBucket(it) | Self::LeakyBucket(LeakyBucket { bucket: it }), Seen::Bucket(tat)) => {
                Seen::Bucket(it.charged(tat, now.steady, cost))
            }
            (Self::FixedWindow(it), Seen::Window(window)) => {
                Seen::Window(it.charged(window, it.time(now), cost))
            }
            (Self::SlidingWindow(_), Seen::Pair(pair)) => Seen::Pair(pair.charged(cost)),
            (Self::SlidingLog(it), Seen::Tally(tally)) => {
                Seen::Tally(tally.charged(cost, it.end(now.steady)))
            }
            (Self::SlidingBuckets(it), Seen::Tally(tally)) => {
                Seen::Tally(tally.charged(cost, it.end(it.index(now.steady))))
            }
            (Self::Concurrency(it), Seen::Tally(tally)) => {
                Seen::Tally(tally.charged(cost, it.end(now.steady)))
            }
            _ => seen,
        }
    }

    /// Decides a `cost` above 0 on a state of few numbers, takes it where it fits, and writes what was
    /// found to mend: what [`see`](Self::see), [`admits`](Self::admits), [`charged`](Self::charged) and
    /// [`write`](Self::write) do one after the other, without parting at each. None for a list.
    #[inline(always)]
    pub fn decide(&self, stored: &mut State, now: Now, cost: u64) -> Option<Decided> {
        match (self, stored) {
            (
                Self::TokenBucket(it) | Self::LeakyBucket(LeakyBucket { bucket: it }),
                State::Bucket(stored),
            ) => {
                let (mut tat, found) = it.read(*stored, now.steady);
                let admitted = it.admits(tat, now.steady, cost);
                if admitted {
                    tat = it.charged(tat, now.steady, cost);
                }
                if admitted || found != Found::Sound {
                    *stored = tat;
                }
                Some(Decided { admitted, found, seen: Seen::Bucket(tat) })
            }
            (Self::FixedWindow(it), State::Window(stored)) => {
                let time = it.time(now);
                let (mut window, found) = it.read(*stored, time);
                let admitted = it.admits(&window, cost);
                if admitted {
                    window = it.charged(window, time, cost);
                }
                if admitted || found != Found::Sound {
                    *stored = window;
                }
                Some(Decided { admitted, found, seen: Seen::Window(window) })
            }
            (Self::SlidingWindow(it), State::Pair(stored)) => {
                let (mut pair, found) = it.read(stored.unpacked(), now.steady);
                let admitted = it.admits(&pair, now.steady, cost);
                if admitted {
                    pair = pair.charged(cost);
                }
                if admitted || found != Found::Sound {
                    *stored = pair.packed();
                }
                Some(Decided { admitted, found, seen: Seen::Pair(pair) })
            }
            _ => None,
        }
    }

    /// Writes what was seen, and `taken` units (0: only what was mended).
    pub fn write(&self, stored: &mut State, seen: Seen, now: Now, taken: u64, lease: LeaseId) {
        let steady = now.steady;
        match (self, &mut *stored, seen) {
            (Self::SlidingLog(it), State::Log(log), _) => it.write(log, steady, taken),
            (Self::SlidingBuckets(it), State::Buckets(buckets), _) => it.write(buckets, steady, taken),
            (Self::Concurrency(it), State::Leases(leases), _) => {
                it.write(leases, steady, (taken > 0).then(|| Lease::new(it.end(steady), taken, lease)));
            }
            (_, _, Seen::Bucket(tat)) => *stored = State::Bucket(tat),
            (_, _, Seen::Window(window)) => *stored = State::Window(window),
            (_, _, Seen::Pair(pair)) => *stored = State::Pair(pair.packed()),
            _ => {}
        }
    }

    /// Gives back up to `units` of what a receipt says was taken; how many were.
    pub fn refund(&self, stored: &mut State, now: Now, units: u64, receipt: &Receipt, undo: bool) -> u64 {
        let (steady, at) = (now.steady, receipt.at.steady);
        match (self, &mut *stored) {
            (Self::TokenBucket(it), State::Bucket(tat)) => {
                given_back(tat, it.read(*tat, steady).0, |tat| it.refund(tat, steady, units, at, None))
            }
            (Self::LeakyBucket(it), State::Bucket(tat)) => {
                let only_last = (!undo).then_some(receipt.full_at);
                given_back(tat, it.bucket.read(*tat, steady).0, |tat| {
                    it.bucket.refund(tat, steady, units, at, only_last)
                })
            }
            (Self::FixedWindow(it), State::Window(window)) => {
                let (time, at) = (it.time(now), it.time(receipt.at));
                given_back(window, it.read(*window, time).0, |window| it.refund(window, time, units, at))
            }
            (Self::SlidingWindow(it), State::Pair(pair)) => {
                let mut read = it.read(pair.unpacked(), steady).0;
                let given = it.refund(&mut read, steady, units, at);
                if given > 0 {
                    *pair = read.packed();
                }
                given
            }
            (Self::SlidingLog(it), State::Log(log)) => it.refund(log, steady, units, (at, receipt.cost)),
            (Self::SlidingBuckets(it), State::Buckets(buckets)) => it.refund(buckets, steady, units, at),
            (Self::Concurrency(_), State::Leases(leases)) => {
                u64::from(leases.release(receipt.lease, steady)) * units
            }
            _ => 0,
        }
    }

    /// What to write into where nothing is stored; none for what stores nothing.
    pub fn fresh(&self, seen: Seen) -> Option<State> {
        Some(match (self, seen) {
            (Self::SlidingLog(_), _) => State::Log(Box::default()),
            (Self::SlidingBuckets(_), _) => State::Buckets(Box::default()),
            (Self::Concurrency(_), _) => State::Leases(Box::default()),
            (_, Seen::Bucket(tat)) => State::Bucket(tat),
            (_, Seen::Window(window)) => State::Window(window),
            (_, Seen::Pair(pair)) => State::Pair(pair.packed()),
            _ => return None,
        })
    }

    /// What is left now.
    #[inline(always)]
    pub fn measure(&self, seen: &Seen, now: Now) -> Measure {
        match (self, seen) {
            (Self::TokenBucket(it) | Self::LeakyBucket(LeakyBucket { bucket: it }), Seen::Bucket(tat)) => {
                it.measure(*tat, now.steady)
            }
            (Self::FixedWindow(it), Seen::Window(window)) => it.measure(window, it.time(now)),
            (Self::SlidingWindow(it), Seen::Pair(pair)) => it.measure(pair, now.steady),
            (_, Seen::Tally(tally)) => tally.measure(self.capacity(), now.steady),
            _ => Measure { remaining: self.capacity(), ..Measure::default() },
        }
    }

    /// The wait after which a refused `cost` (at most the capacity) is admitted, if nobody else
    /// comes.
    pub fn retry_after(&self, seen: &Seen, now: Now, cost: u64) -> u64 {
        match (self, seen) {
            (Self::TokenBucket(it) | Self::LeakyBucket(LeakyBucket { bucket: it }), Seen::Bucket(tat)) => {
                it.retry_after(*tat, now.steady, cost)
            }
            (Self::FixedWindow(it), Seen::Window(window)) => it.retry_after(window, it.time(now)),
            (Self::SlidingWindow(it), Seen::Pair(pair)) => it.retry_after(pair, now.steady, cost),
            (_, Seen::Tally(tally)) => tally.needed_end.saturating_sub(now.steady),
            _ => 0,
        }
    }

    /// How long an admitted request is held, seen after `taken` units were taken.
    pub fn delay(&self, seen: &Seen, now: Now, taken: u64) -> u64 {
        match (self, seen) {
            (Self::LeakyBucket(it), Seen::Bucket(tat)) => it.delay(*tat, now.steady, taken),
            _ => 0,
        }
    }
}

/// Refunds from a state as it was read, and keeps that only when something was given back.
fn given_back<S>(stored: &mut S, mut read: S, refund: impl FnOnce(&mut S) -> u64) -> u64 {
    let given = refund(&mut read);
    if given > 0 {
        *stored = read;
    }
    given
}
