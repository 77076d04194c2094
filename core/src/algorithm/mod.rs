//! The algorithms: pure functions over integers, one file each.
//!
//! Every algorithm has the same five: `read` brings a stored state to the present, `admits` asks,
//! `charge` takes, `measure` tells what is left, and `retry_after` promises. The caller holds the
//! lock and keeps the order; a store that decides elsewhere (a script) still uses the last two.

pub(crate) mod fixed_window;
pub(crate) mod interval;
pub(crate) mod token_bucket;

use crate::clock::Now;
use crate::key::MAX_COST;
use fixed_window::{FixedWindow, Window};
pub(crate) use interval::MAX_SPAN_US;
use token_bucket::{Tat, TokenBucket};

/// An algorithm with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Algorithm {
    TokenBucket(TokenBucket),
    FixedWindow(FixedWindow),
    Deny,
    Unlimited,
}

/// What is stored for one limit and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing is known: a full bucket, a window that has not begun.
    Fresh,
    TokenBucket(Tat),
    FixedWindow(Window),
}

/// What is left at one instant; microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    pub used: u64,
    pub remaining: u64,
    /// Until nothing is owed.
    pub reset_after: u64,
    /// Until `remaining` grows by one; 0 when it cannot.
    pub next_after: u64,
}

/// What a state was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// As it was stored, or aged as time passes.
    Sound,
    /// From the future: it was read as if made now and should be written back.
    Future,
}

impl Algorithm {
    /// The largest cost that can ever pass.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.capacity,
            Self::FixedWindow(window) => window.limit,
            Self::Deny => 0,
            Self::Unlimited => MAX_COST,
        }
    }

    /// Whether it is decided by wall time.
    pub fn reads_wall(&self) -> bool {
        matches!(self, Self::FixedWindow(window) if window.reads_wall())
    }

    /// Whether anything is stored for it.
    #[cfg(feature = "redis")]
    pub fn has_state(&self) -> bool {
        matches!(self, Self::TokenBucket(_) | Self::FixedWindow(_))
    }

    /// Brings a stored state to the present.
    pub fn read(&self, state: &mut State, now: Now) -> Found {
        match (self, state) {
            (Self::TokenBucket(bucket), State::TokenBucket(tat)) => bucket.read(tat, now.steady),
            (Self::FixedWindow(limit), State::FixedWindow(window)) => limit.read(window, limit.time(now)),
            (_, state) => {
                *state = State::Fresh;
                Found::Sound
            }
        }
    }

    /// Whether `cost` fits now; the state has been read.
    pub fn admits(&self, state: &State, now: Now, cost: u64) -> bool {
        if cost == 0 {
            return *self != Self::Deny;
        }
        match self {
            Self::TokenBucket(bucket) => bucket.admits(state.tat(), now.steady, cost),
            Self::FixedWindow(limit) => limit.admits(&state.window(), cost),
            Self::Deny => false,
            Self::Unlimited => true,
        }
    }

    /// Takes a `cost` that fits; the state has been read.
    pub fn charge(&self, state: &mut State, now: Now, cost: u64) {
        if cost == 0 {
            return;
        }
        match self {
            Self::TokenBucket(bucket) => {
                *state = State::TokenBucket(bucket.charged(state.tat(), now.steady, cost));
            }
            Self::FixedWindow(limit) => {
                *state = State::FixedWindow(limit.charged(state.window(), limit.time(now), cost));
            }
            Self::Deny | Self::Unlimited => {}
        }
    }

    /// What is left now; the state has been read.
    pub fn measure(&self, state: &State, now: Now) -> Measure {
        match self {
            Self::TokenBucket(bucket) => bucket.measure(state.tat(), now.steady),
            Self::FixedWindow(limit) => limit.measure(&state.window(), limit.time(now)),
            Self::Deny | Self::Unlimited => {
                Measure { used: 0, remaining: self.capacity(), reset_after: 0, next_after: 0 }
            }
        }
    }

    /// The wait after which a refused `cost` (at most the capacity) is admitted, if nobody else
    /// comes; the state has been read.
    pub fn retry_after(&self, state: &State, now: Now, cost: u64) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.retry_after(state.tat(), now.steady, cost),
            Self::FixedWindow(limit) => limit.retry_after(&state.window(), limit.time(now)),
            Self::Deny | Self::Unlimited => 0,
        }
    }
}

impl State {
    /// Whether it says nothing any more, so that forgetting it changes no answer.
    pub fn is_spent(&self, now: Now) -> bool {
        match self {
            Self::Fresh => true,
            Self::TokenBucket(tat) => tat.is_past(now.steady),
            // Kept until both clocks are past it, whichever of the two it was written by.
            Self::FixedWindow(window) => window.end <= now.steady.min(now.wall),
        }
    }

    fn tat(&self) -> Tat {
        match self {
            Self::TokenBucket(tat) => *tat,
            _ => Tat::default(),
        }
    }

    fn window(&self) -> Window {
        match self {
            Self::FixedWindow(window) => *window,
            _ => Window::default(),
        }
    }
}
