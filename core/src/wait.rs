//! Waiting until a request is admitted, as steps: each language sleeps in its own way.

use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::decision::Decision;
use crate::limiter::Limiter;
use crate::told::BareDecision;
use crate::{Result, duration};

/// How often a place under a concurrency limit is asked for: a release is not announced.
const POLL: Duration = Duration::from_millis(20);

impl Limiter {
    /// Waits until `cost` is admitted and due, or the timeout has passed: without one for ever.
    ///
    /// It never fails for a refusal: the last decision is returned. At once when no wait helps, and when
    /// `retry_after` lies beyond the timeout. Else it sleeps `retry_after` (and an admitted leaky
    /// request's `delay`, where that is within the timeout), and asks again; no order among waiters is
    /// promised. A timeout of 0 asks once. On a manual clock it advances the clock and takes no time.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), and `closed` when it is closed meanwhile.
    pub fn wait(&self, key: impl AsRef<[u8]>, cost: u64, timeout: Option<Duration>) -> Result<Decision> {
        let mut waiter = self.waiter(key, cost, timeout);
        loop {
            match waiter.step()? {
                Step::Done(decision) => return Ok(decision),
                Step::Sleep(wait) => self.sleep(wait)?,
            }
        }
    }

    /// [`wait`](Self::wait) as steps, for those who sleep in a way of their own.
    pub fn waiter(&self, key: impl AsRef<[u8]>, cost: u64, timeout: Option<Duration>) -> Waiter {
        Waiter::new(self, key.as_ref(), cost, timeout)
    }

    /// Sleeps, unless the limiter is closed: then it is the error `closed`, at once.
    ///
    /// # Errors
    /// `closed`.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        self.closing().sleep(time)
    }
}

/// What a waiter does next.
#[derive(Debug)]
pub enum Step<D = Decision> {
    /// Sleep so long, then ask for the next step. Never on a manual clock: that was advanced.
    Sleep(Duration),
    /// This is the answer: admitted and due, or refused.
    Done(D),
}

/// A request that waits to be admitted; see [`Limiter::wait`].
#[derive(Debug)]
pub struct Waiter {
    limiter: Limiter,
    key: Box<[u8]>,
    cost: u64,
    begun: Instant,
    /// Until when it may wait; for ever without.
    timeout: Option<Duration>,
    /// How long it has waited on a manual clock.
    advanced: Duration,
    /// An admitted decision whose turn comes after the sleep.
    admitted: Option<BareDecision>,
}

impl Waiter {
    pub(crate) fn new(limiter: &Limiter, key: &[u8], cost: u64, timeout: Option<Duration>) -> Self {
        Self {
            limiter: limiter.clone(),
            key: key.into(),
            cost,
            begun: Instant::now(),
            timeout,
            advanced: Duration::ZERO,
            admitted: None,
        }
    }

    /// Asks once and says what to do. Called after the sleep that the last step asked for.
    ///
    /// # Errors
    /// As [`Limiter::acquire`], `closed` as soon as the limiter is, and `invalid_argument` for a timeout of
    /// less than a microsecond that is not 0.
    pub fn step(&mut self) -> Result<Step> {
        Ok(match self.step_bare()? {
            Step::Sleep(wait) => Step::Sleep(wait),
            Step::Done(bare) => Step::Done(self.limiter.complete(&self.key, bare)),
        })
    }

    /// [`step`](Self::step) for a binding that keeps the key and the limiter itself.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn step_bare(&mut self) -> Result<Step<BareDecision>> {
        if let Some(timeout) = self.timeout.filter(|timeout| !timeout.is_zero()) {
            duration::to_micros("timeout", timeout)?;
        }
        loop {
            self.limiter.closing().check_open()?;
            if let Some(decision) = self.admitted.take() {
                return Ok(Step::Done(decision));
            }
            let decision =
                self.limiter
                    .acquire_bare_at(&self.key, self.cost, self.limiter.read_clock()?, |bare| bare)?;
            let Some(wait) = self.next(&decision)? else { return Ok(Step::Done(decision)) };
            if decision.allowed() {
                self.admitted = Some(decision);
            }
            if !wait.is_zero() {
                return Ok(Step::Sleep(wait));
            }
        }
    }

    /// What comes after a decision, also for those who ask in a way of their own: none when it is the answer;
    /// else how long to sleep, before an admitted one is the answer and a refused one is asked again. Zero
    /// on a manual clock, which was advanced.
    ///
    /// # Errors
    /// `invalid_argument` where a manual clock would leave its domain.
    pub fn next(&mut self, decision: &BareDecision) -> Result<Option<Duration>> {
        let Some(wait) = self.next_wait(decision) else { return Ok(None) };
        let Clock::Manual(clock) = self.limiter.clock() else { return Ok(Some(wait)) };
        clock.advance_us(duration::to_micros("wait", wait)?)?;
        self.advanced += wait;
        Ok(Some(Duration::ZERO))
    }

    /// How long to wait; none when the decision is the answer.
    fn next_wait(&self, decision: &BareDecision) -> Option<Duration> {
        let decision = self.limiter.tell(decision);
        let manual = matches!(self.limiter.clock(), Clock::Manual(_));
        let waited = if manual { self.advanced } else { self.begun.elapsed() };
        let left = self.timeout.map_or(Duration::MAX, |timeout| timeout.saturating_sub(waited));
        if decision.allowed() {
            return Some(decision.delay()).filter(|&delay| !delay.is_zero() && delay <= left);
        }
        let wait = decision.retry_after()?;
        if !manual && decision.decided_by_concurrency() {
            // A release may come at any time, so that the wait is not beyond the timeout.
            return Some(wait.min(POLL).min(left)).filter(|wait| !wait.is_zero());
        }
        Some(wait).filter(|&wait| wait <= left)
    }
}
