//! A decision as numbers: `lib/decision.js` reads them in this order.

use std::time::Duration;

use mirab::{Decision, Receipt, Result};

use crate::js::{Call, Context, IntoJs, Value};

/// A decision on its way to JavaScript, and whether it stays here for its headers.
pub struct Outcome {
    decision: Decision,
    held: bool,
}

impl Outcome {
    pub fn told(decision: Decision) -> Self {
        Self { decision, held: false }
    }

    pub fn held(decision: Decision) -> Self {
        Self { decision, held: true }
    }

    /// allowed, limit, used, remaining, retry after, reset after, delay, never, degraded, which
    /// limit decided (-1: a block), the number of the held decision, how many limits; the seven
    /// numbers of its receipt, all 0 when it took nothing; then of each limit limit, used, remaining,
    /// reset after, next after. Durations are microseconds; -1: absent.
    fn numbers(&self, context: &Context<'_>) -> impl Iterator<Item = f64> {
        let d = &self.decision;
        let held = self.held.then(|| context.state().decisions.borrow_mut().insert(d.clone()));
        let head = [
            flag(d.allowed()),
            d.limit() as f64,
            d.used() as f64,
            d.remaining() as f64,
            us(d.retry_after()),
            us(Some(d.reset_after())),
            us(Some(d.delay())),
            flag(d.never()),
            flag(d.degraded()),
            number(d.limit_index()),
            number(held),
            d.standings().len() as f64,
        ];
        let receipt = d.receipt().map_or([0; 7], Receipt::to_parts).map(|part| part as f64);
        head.into_iter().chain(receipt).chain(d.standings().iter().flat_map(|s| {
            let counts = [s.limit, s.used, s.remaining].map(|count| count as f64);
            counts.into_iter().chain([us(Some(s.reset_after)), us(s.next_after)])
        }))
    }

    /// Writes it to the shared array.
    pub fn write(&self, context: &Context<'_>) -> Result<Value> {
        context.write_results(self.numbers(context));
        context.give(())
    }
}

impl IntoJs for Outcome {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        context.give(self.numbers(context).collect::<Vec<_>>())
    }
}

/// `(heldDecision)`.
pub fn free(call: &Call<'_>) -> Result<Value> {
    call.state().decisions.borrow_mut().try_remove(call.handle(0)?);
    call.give(())
}

fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn number(index: Option<usize>) -> f64 {
    index.map_or(-1.0, |index| index as f64)
}

fn us(duration: Option<Duration>) -> f64 {
    duration.map_or(-1.0, |duration| duration.as_micros() as f64)
}
