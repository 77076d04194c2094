//! Closing: those who wait inside are woken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::{Error, ErrorKind, Result};

/// Whether a limiter is closed, and who waits meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    closed: AtomicBool,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Closing {
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        drop(self.lock.lock());
        self.woken.notify_all();
    }

    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the limiter is closed"));
        }
        Ok(())
    }

    pub fn sleep(&self, time: Duration) -> Result<()> {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let open = |_: &mut ()| !self.closed.load(Ordering::Acquire);
        drop(self.woken.wait_timeout_while(guard, time, open));
        self.check_open()
    }
}
