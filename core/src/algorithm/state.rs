//! What a store in this process keeps for one limit and key.

use super::concurrency::Leases;
use super::fixed_window::Window;
use super::interval::Span;
use super::sliding_buckets::Buckets;
use super::sliding_log::Log;
use super::sliding_window::{PackedPair, Pair};
use super::token_bucket::Tat;
use crate::clock::Now;

/// What a store keeps for one limit and key; keeping nothing is a full bucket, an empty window.
///
/// Sixteen bytes, whatever it is: the numbers lie beside the tag without gaps, lists elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Bucket(Tat),
    Window(Window),
    Pair(PackedPair),
    Log(Box<Log>),
    Buckets(Box<Buckets>),
    Leases(Box<Leases>),
}

const _: () = assert!(size_of::<State>() == 16);

/// The bit at which a word holds the kind of its state, above every instant.
const KIND: u32 = 60;

impl State {
    /// When nothing is owed any more, if nobody comes.
    pub fn end(&self) -> u64 {
        match self {
            Self::Bucket(tat) => tat.0.whole + u64::from(tat.0.fraction > 0),
            Self::Window(window) => window.end,
            Self::Pair(pair) => pair.unpacked().end,
            Self::Log(log) => log.last_end,
            Self::Buckets(buckets) => buckets.last_end,
            Self::Leases(leases) => leases.last_end(),
        }
    }

    /// How much it owes: the time until nothing is owed, times what is in use where that is a count.
    pub fn debt(&self, now: Now) -> u128 {
        let (time, units) = match self {
            Self::Bucket(_) => (now.steady, 1),
            Self::Window(window) => (now.steady.max(now.wall), u64::from(window.count)),
            Self::Pair(pair) => {
                let Pair { current, previous, .. } = pair.unpacked();
                (now.steady, u64::from(current) + u64::from(previous))
            }
            Self::Log(log) => (now.steady, log.total),
            Self::Buckets(buckets) => (now.steady, buckets.total()),
            Self::Leases(leases) => (now.steady, leases.total),
        };
        u128::from(self.end().saturating_sub(time)) * u128::from(units)
    }

    /// Whether it says nothing any more, so that forgetting it changes no answer.
    pub fn is_spent(&self, now: Now) -> bool {
        // Of windows until both clocks are past it, whichever of the two it was written by.
        self.end() <= now.steady.min(now.wall)
    }

    /// A copy; none of a list.
    #[inline]
    pub fn copied(&self) -> Option<Self> {
        match self {
            Self::Bucket(tat) => Some(Self::Bucket(*tat)),
            Self::Window(window) => Some(Self::Window(*window)),
            Self::Pair(pair) => Some(Self::Pair(*pair)),
            Self::Log(_) | Self::Buckets(_) | Self::Leases(_) => None,
        }
    }

    /// The state as two words; none for a list.
    pub fn words(&self) -> Option<[u64; 2]> {
        let (kind, instant, numbers) = match self {
            Self::Bucket(Tat(span)) => (0, span.whole, u64::from(span.fraction)),
            Self::Window(window) => (1, window.end, u64::from(window.count)),
            Self::Pair(pair) => {
                let Pair { end, current, previous } = pair.unpacked();
                (2, end, u64::from(previous) << 32 | u64::from(current))
            }
            Self::Log(_) | Self::Buckets(_) | Self::Leases(_) => return None,
        };
        (instant >> KIND == 0).then_some([kind << KIND | instant, numbers])
    }

    /// The state that [`words`](Self::words) told.
    pub fn from_words([first, numbers]: [u64; 2]) -> Self {
        let (kind, instant) = (first >> KIND, first & ((1 << KIND) - 1));
        match kind {
            0 => Self::Bucket(Tat(Span { whole: instant, fraction: numbers as u32 })),
            1 => Self::Window(Window { end: instant, count: numbers as u32 }),
            _ => {
                let (current, previous) = (numbers as u32, (numbers >> 32) as u32);
                Self::Pair(Pair { end: instant, current, previous }.packed())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_the_state_says() {
        let end = (1 << 53) - 1;
        for state in [
            State::Bucket(Tat(Span { whole: end, fraction: u32::MAX })),
            State::Window(Window { end, count: u32::MAX }),
            State::Pair(Pair { end, current: 7, previous: u32::MAX }.packed()),
        ] {
            assert_eq!(state.words().map(State::from_words), Some(state));
        }
        assert_eq!(State::Log(Box::default()).words(), None);
    }
}
