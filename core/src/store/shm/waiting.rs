//! Waiting for a lock's holder: a little, since what lies behind it takes tens of nanoseconds; then as for
//! one who seems not to be running; then as for one who may be dead, or stopped.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

use super::part::Holder;
use super::word::Word;
use crate::{Error, ErrorKind, Result};

/// How often a held lock is looked at, at first at short intervals, each twice as long as the one before,
/// so that its holder can do more than one thing before the cache line moves here.
const FIRST_SPINS: u32 = 16;
const DOUBLINGS: u32 = 5;
const YIELDS: u32 = 20;
const SLEEP: Duration = Duration::from_micros(50);

/// How long the same holder is waited for before somebody asks whether he lives.
const PATIENCE: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(super) struct Waiting {
    tries: u32,
    /// The lock as it was last seen, since when, and when its holder was last asked after.
    met: Option<(u64, Instant, Instant)>,
}

impl Waiting {
    /// Waits once for `holder`, who held the lock `word` as `lock`. True when he is dead.
    ///
    /// # Errors
    /// `store_timeout` when he has lived and held it for all of the time that is given; soon, where somebody of this
    /// process has waited for that before.
    pub fn turn(&mut self, word: &Word, lock: u64, holder: u64, who: Holder<'_>) -> Result<bool> {
        #[cfg(test)]
        if let Some(is_dead) = super::turns::wait(holder) {
            return Ok(is_dead);
        }
        let place = std::ptr::from_ref(word) as usize;
        if self.tries == DOUBLINGS && who.stuck.knows(place, lock) {
            return if who.owners.lives(holder) { Err(stuck(who.timeout)) } else { Ok(true) };
        }
        if self.tries >= YIELDS {
            let now = Instant::now();
            match &mut self.met {
                Some((met, since, asked)) if *met == lock => {
                    if now - *asked >= PATIENCE {
                        *asked = now;
                        if !who.owners.lives(holder) {
                            return Ok(true);
                        }
                        if now - *since >= who.timeout {
                            who.stuck.learn(place, lock);
                            return Err(stuck(who.timeout));
                        }
                    }
                }
                met => *met = Some((lock, now, now)),
            }
        }
        if self.tries < DOUBLINGS {
            (0..FIRST_SPINS << self.tries).for_each(|_| hint::spin_loop());
        } else if self.tries < YIELDS {
            thread::yield_now();
        } else {
            thread::sleep(SLEEP);
        }
        self.tries = self.tries.saturating_add(1);
        Ok(false)
    }
}

fn stuck(timeout: Duration) -> Error {
    Error::new(
        ErrorKind::StoreTimeout,
        format!(
            "a process that is stopped holds this key's part of the shared-memory store, for {timeout:?} or longer: \
             it must go on, or end"
        ),
    )
}
