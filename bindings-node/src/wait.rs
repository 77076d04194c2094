//! Requests that wait to be admitted: `lib/limiter.js` sleeps between the steps.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use mirab::{BareDecision, Driver, Error, ErrorKind, Limiter, Result, Step, Waiter, duration};

use crate::clock;
use crate::decision;
use crate::in_loop::no_loop;
use crate::js::{Call, Context, IntoJs, Slots, Value};
use crate::limiter;

/// A waiter.
#[derive(Clone)]
pub struct Waiting(Rc<Inner>);

struct Inner {
    limiter: Limiter,
    key: Box<[u8]>,
    cost: u64,
    waiter: RefCell<Waiter>,
    /// An admitted decision that a store elsewhere gave, whose turn comes after the sleep.
    admitted: Cell<Option<BareDecision>>,
}

/// What to do next: to sleep, as microseconds, or the slots of the decision.
struct Next(Step<Slots>);

impl IntoJs for Next {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        match self.0 {
            Step::Sleep(time) => context.give(time.as_nanos().div_ceil(1000) as f64),
            Step::Done(slots) => context.give(slots),
        }
    }
}

impl Inner {
    /// The next step, in this process.
    fn step(&self, told: Option<f64>) -> Result<Next> {
        self.limiter.sleep(Duration::ZERO)?; // closed while it slept
        Ok(match clock::telling(told, || self.waiter.borrow_mut().step_bare())? {
            Step::Sleep(time) => Next(Step::Sleep(time)),
            Step::Done(bare) => self.done(bare),
        })
    }

    /// What comes after a decision of a store elsewhere.
    fn after(&self, bare: BareDecision) -> Result<Next> {
        let Some(time) = self.waiter.borrow_mut().next(&bare)? else { return Ok(self.done(bare)) };
        if self.limiter.tell(&bare).allowed() {
            self.admitted.set(Some(bare));
        }
        Ok(Next(Step::Sleep(time)))
    }

    fn done(&self, bare: BareDecision) -> Next {
        Next(Step::Done(decision::slots(&self.limiter, &[bare])))
    }
}

/// `(limiter, key, cost, timeoutMs?) => waiter`.
pub fn new(call: &Call<'_>) -> Result<Value> {
    let timeout =
        call.number_or_none(3).map(|ms| duration::timeout_from_millis("timeoutMs", ms)).transpose()?;
    let (limiter, cost) = (limiter::at(call)?, call.integer(2)?);
    let key: Box<[u8]> = call.with_bytes(1, |key| Ok(key.into()))?;
    let waiter = RefCell::new(limiter.waiter(&key, cost, timeout));
    let waiting = Waiting(Rc::new(Inner { limiter, key, cost, waiter, admitted: Cell::default() }));
    call.give(call.state().waiters.borrow_mut().insert(waiting) as f64)
}

/// `(waiter)`.
pub fn free(call: &Call<'_>) -> Result<Value> {
    call.state().waiters.borrow_mut().try_remove(call.handle(0)?);
    call.give(())
}

/// `(waiter, time?) => number | Float64Array`.
pub fn step(call: &Call<'_>) -> Result<Value> {
    call.give(at(call)?.0.step(call.number_or_none(1))?)
}

/// As `waiterStep`, of a store elsewhere: that, or a promise of it.
pub fn step_async(call: &Call<'_>) -> Result<Value> {
    let Waiting(inner) = at(call)?;
    inner.limiter.sleep(Duration::ZERO)?; // closed while it slept
    if let Some(bare) = inner.admitted.take() {
        return call.give(inner.done(bare));
    }
    let time = call.number_or_none(1).map_or_else(|| inner.limiter.read_clock(), clock::given)?;
    let asking = Rc::clone(&inner);
    let ask =
        move |driver: &mut Driver, id| driver.acquire(&asking.limiter, id, &asking.key, asking.cost, time);
    let limiter = inner.limiter.clone();
    let answered = call.in_loop(&limiter, ask, move |context, bare| context.give(inner.after(bare)?))?;
    answered.ok_or_else(no_loop)
}

fn at(call: &Call<'_>) -> Result<Waiting> {
    let waiters = call.state().waiters.borrow();
    waiters
        .get(call.handle(0)?)
        .cloned()
        .ok_or_else(|| Error::new(ErrorKind::Internal, "a waiter that does not exist"))
}
