//! Blocks: a key is refused for a time, under any policy.

use std::time::Duration;

use super::Limiter;
use crate::algorithm::MAX_SPAN_US;
use crate::clock::Time;
use crate::{Error, Result, duration, key};

impl Limiter {
    /// Refuses the key for so long, under any policy on this store and prefix, also at cost 0. A later
    /// block replaces it; [`unblock`](Self::unblock) and [`reset`](Self::reset) lift it.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); a duration of less than a microsecond or more than 2^50.
    pub fn block(&self, key: impl AsRef<[u8]>, duration: Duration) -> Result<()> {
        self.block_at(key, duration, self.read_clock()?)
    }

    /// [`block`](Self::block) at a time that was read before.
    ///
    /// # Errors
    /// As [`block`](Self::block).
    pub fn block_at(&self, key: impl AsRef<[u8]>, duration: Duration, time: Time) -> Result<()> {
        self.check_open()?;
        key::check(key.as_ref())?;
        let for_us = duration::to_micros("block", duration)?;
        if for_us > MAX_SPAN_US {
            return Err(Error::argument(format!(
                "a block of {duration:?}: at most 2^50 microseconds (35 years)"
            )));
        }
        self.inner.store.block(key.as_ref(), for_us, time)?;
        self.saw_block(key.as_ref(), Some(for_us), time);
        Ok(())
    }

    /// Lifts a block; none is fine.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn unblock(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.unblock_at(key, self.read_clock()?)
    }

    /// [`unblock`](Self::unblock) in the key space of a time that was read before.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn unblock_at(&self, key: impl AsRef<[u8]>, time: Time) -> Result<()> {
        self.check_open()?;
        key::check(key.as_ref())?;
        self.inner.store.unblock(key.as_ref(), time)?;
        self.saw_block(key.as_ref(), None, time);
        Ok(())
    }
}
