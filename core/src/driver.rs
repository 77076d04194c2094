//! Limiters in an event loop: requests that are answered later, without a thread that waits.

use std::os::fd::RawFd;

use crate::Result;
use crate::clock::Time;
use crate::limiter::Limiter;
use crate::store::LoopStore;
pub use crate::store::Watch;
use crate::store::charge::{Mode, Outcome};
use crate::told::BareDecision;

/// What drives the requests of one event loop to one store elsewhere.
///
/// The loop watches the descriptors that [`turn`](Self::turn) and [`wake_fd`](Self::wake_fd) name, calls
/// `turn` when one is ready, when the time has come that it said, and at the end of each turn of the loop
/// in which something was asked. After each it [collects](Self::take_answered) what was decided. A
/// driver belongs to one thread at a time.
pub struct Driver {
    store: LoopStore<Asker>,
}

/// Who asked, and what.
struct Asker {
    id: u64,
    limiter: Limiter,
    key: Box<[u8]>,
    cost: u64,
    mode: Mode,
    time: Time,
}

impl Driver {
    /// A driver for the store of `limiter`, and for every limiter on the same store; none where it decides
    /// in this process, without waiting.
    ///
    /// # Errors
    /// `store_unavailable` when the process has no descriptors left.
    pub fn new(limiter: &Limiter) -> Result<Option<Self>> {
        Ok(limiter.store().in_a_loop()?.map(|store| Self { store }))
    }

    /// Whether it is the driver of this limiter's store.
    pub fn serves(&self, limiter: &Limiter) -> bool {
        limiter.store().is_driven_by(&self.store)
    }

    /// Acquires for a limiter on this store. The decision at once where nothing needs to be asked; else
    /// none, and it is collected later under `id`.
    ///
    /// # Errors
    /// As [`Limiter::acquire`].
    pub fn acquire(
        &mut self,
        limiter: &Limiter,
        id: u64,
        key: &[u8],
        cost: u64,
        time: Time,
    ) -> Result<Option<BareDecision>> {
        self.ask(limiter, id, (key, cost), time, Mode::Acquire)
    }

    /// As [`acquire`](Self::acquire), but takes nothing.
    ///
    /// # Errors
    /// As [`Limiter::peek`].
    pub fn peek(
        &mut self,
        limiter: &Limiter,
        id: u64,
        key: &[u8],
        cost: u64,
        time: Time,
    ) -> Result<Option<BareDecision>> {
        self.ask(limiter, id, (key, cost), time, Mode::Peek)
    }

    /// Does what can be done without waiting, and says what to watch.
    pub fn turn(&mut self) -> Watch {
        self.store.turn()
    }

    /// The descriptor that becomes readable when a connection was made, or could not be.
    pub fn wake_fd(&self) -> RawFd {
        self.store.wake_fd()
    }

    /// What was decided since it was last asked, by the `id` of each.
    pub fn take_answered(&mut self) -> Vec<(u64, Result<BareDecision>)> {
        let answered = self.store.take_answered().into_iter();
        answered.map(|(asker, outcome)| (asker.id, asker.decided(outcome))).collect()
    }

    fn ask(
        &mut self,
        limiter: &Limiter,
        id: u64,
        (key, cost): (&[u8], u64),
        time: Time,
        mode: Mode,
    ) -> Result<Option<BareDecision>> {
        let request = limiter.request(key, cost)?;
        let asker = || Asker { id, limiter: limiter.clone(), key: key.into(), cost, mode, time };
        match self.store.ask(limiter.policy(), &request, mode, time, asker()) {
            Ok(None) => Ok(None),
            Ok(Some((asker, outcome))) => asker.decided(Ok(outcome)).map(Some),
            Err(error) => asker().decided(Err(error)).map(Some),
        }
    }
}

impl Asker {
    fn decided(self, outcome: Result<Outcome>) -> Result<BareDecision> {
        self.limiter.decided_elsewhere(outcome, (&self.key, self.cost), self.mode, self.time)
    }
}
