//! Lanes: a thread's own part of what many threads write, so that none waits for another's cache line.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many threads at once have a lane of their own; all further ones share the last.
pub(crate) const OWN: usize = 15;

/// Lanes in all.
pub(crate) const LANES: usize = OWN + 1;

/// A lane, and whether this thread alone writes to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub index: usize,
    pub is_own: bool,
}

const SHARED: Lane = Lane { index: OWN, is_own: false };

/// Which lanes are taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);

thread_local!(static LANE: Taken = const { Taken(Cell::new(None)) });

/// This thread's lane. Who takes it over when the thread has ended sees all that it wrote there.
#[inline]
pub(crate) fn lane() -> Lane {
    LANE.try_with(|taken| taken.0.get().unwrap_or_else(|| taken.take())).unwrap_or(SHARED)
}

struct Taken(Cell<Option<Lane>>);

impl Taken {
    #[cold]
    fn take(&self) -> Lane {
        let lowest_free = |taken: u64| {
            let free = (!taken).trailing_zeros() as usize;
            (free < OWN).then_some(taken | 1 << free)
        };
        let lane = match TAKEN.fetch_update(Ordering::AcqRel, Ordering::Relaxed, lowest_free) {
            Ok(taken) => Lane { index: (!taken).trailing_zeros() as usize, is_own: true },
            Err(_) => SHARED,
        };
        self.0.set(Some(lane));
        lane
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(Lane { index, is_own: true }) = self.0.get() {
            TAKEN.fetch_and(!(1 << index), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn living_threads_have_different_lanes_and_the_rest_share_one() {
        let all = Barrier::new(40);
        let mut lanes: Vec<Lane> = thread::scope(|scope| {
            let thread = || {
                let mine = lane();
                assert_eq!(lane(), mine);
                all.wait();
                mine
            };
            let threads: Vec<_> = (0..40).map(|_| scope.spawn(thread)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        lanes.retain(|lane| lane.is_own);
        let own = lanes.len();
        lanes.sort_unstable_by_key(|lane| lane.index);
        lanes.dedup();
        assert_eq!(lanes.len(), own, "two threads had the same lane");
        assert!(lanes.iter().all(|lane| lane.index < OWN));
    }

    #[test]
    fn a_lane_is_given_back_when_its_thread_ends() {
        for _ in 0..1_000 {
            thread::spawn(lane).join().unwrap();
        }
        // Other tests hold some, but not a thousand.
        let again: Vec<Lane> = (0..50).map(|_| thread::spawn(lane).join().unwrap()).collect();
        assert!(again.iter().any(|lane| lane.is_own));
    }
}
