//! A decision as numbers, which `lib/decision.js` reads.
//!
//! They stand in slots of 64 bits: a double, or two words of 32, which JavaScript reads as small integers
//! and has no object to make for. A count is a word where all counts fit one, else all are doubles.
//! Durations are microseconds, as doubles; -1: absent.
//!
//! | slot | what |
//! |---|---|
//! | 0 | flags; which limit decided (-1: a block) |
//! | 1 | how many standings; the number of the held decision |
//! | 2, 3 | retry after, delay |
//! | 4 to 10 | the receipt: steady time, wall time, cost (a count), three doubles, 64 bits |
//! | 11... | of each standing limit, used, remaining (counts), reset after, next after |

use std::cell::Cell;
use std::time::Duration;

use mirab::{BareDecision, Decision, Limiter, Receipt, Result, Standing, Told};

use crate::js::{Call, Context, IntoJs, Slots, Value};

const ALLOWED: u32 = 1;
const NEVER: u32 = 2;
const DEGRADED: u32 = 4;
/// Counts are doubles.
const WIDE: u32 = 8;
/// The three doubles of the receipt, and the low word after them, are not all 0.
const LEASED: u32 = 16;

const RECEIPT: usize = 4;
const COST: usize = RECEIPT + 2;
const HEAD: usize = 11;
const STANDING: usize = 5;
/// The largest small integer of JavaScript.
const LARGEST_WORD: u64 = i32::MAX as u64;

/// Writes what a decision tells.
pub fn write(told: Told<'_>, held: Option<usize>, slots: &[Cell<u64>]) {
    let (head, standings) = slots.split_at(HEAD);
    let receipt = told.receipt().map_or([0; 7], Receipt::to_parts);
    let [steady, wall, cost, high, low, full_at, last] = receipt;
    let counted =
        told.standings().zip(standings.chunks_exact(STANDING)).fold(cost, |counted, (standing, to)| {
            let Standing { limit, used, remaining, reset_after, next_after, .. } = standing;
            set(to, [limit, used, remaining, us(Some(reset_after)), us(next_after)]);
            counted | limit | used | remaining
        });
    let flag = |is: bool, flag| if is { flag } else { 0 };
    let flags = flag(told.allowed(), ALLOWED)
        | flag(told.never(), NEVER)
        | flag(told.degraded(), DEGRADED)
        | flag(counted > LARGEST_WORD, WIDE)
        | flag(high | low | full_at | u64::from(last as u32) != 0, LEASED);
    let decided = told.limit_index().map_or(-1, |index| index as i32);
    head[0].set(words(flags, decided as u32));
    head[1].set(words(told.standings().len() as u32, held.map_or(0, |held| held as u32)));
    set(&head[2..], [us(told.retry_after()), us(Some(told.delay()))]);
    set(
        &head[RECEIPT..],
        [double(steady), double(wall), cost, double(high), double(low), double(full_at), last],
    );
    if counted > LARGEST_WORD {
        widen(&head[COST], standings.chunks_exact(STANDING).take(told.standings().len()));
    }
}

/// Makes doubles of all counts.
#[cold]
fn widen<'a>(cost: &Cell<u64>, standings: impl Iterator<Item = &'a [Cell<u64>]>) {
    let counts = standings.flat_map(|standing| &standing[..3]);
    for count in counts.chain([cost]) {
        count.set(double(count.get()));
    }
}

/// Decisions of one limiter: each takes as many slots as one with a standing for each limit.
pub fn slots(limiter: &Limiter, decisions: &[BareDecision]) -> Slots {
    let length = HEAD + STANDING * limiter.policy().limits().len();
    let mut slots = vec![0; length * decisions.len()];
    for (bare, to) in decisions.iter().zip(slots.chunks_exact_mut(length)) {
        write(limiter.tell(bare), None, Cell::from_mut(to).as_slice_of_cells());
    }
    Slots(slots)
}

/// A receipt, which JavaScript has written back: its cost as a double.
pub fn receipt(slots: &[Cell<u64>]) -> Receipt {
    let mut parts = [0; 7];
    for (part, slot) in parts.iter_mut().zip(&slots[RECEIPT..]) {
        *part = f64::from_bits(slot.get()) as u64;
    }
    parts[6] = slots[RECEIPT + 6].get();
    Receipt::from_parts(parts)
}

/// A decision that is held here for [`crate::http::answer`].
pub struct Held(pub Decision);

impl Held {
    /// Holds it, and writes what it tells.
    pub fn write(self, context: &Context<'_>, slots: &[Cell<u64>]) {
        let mut decisions = context.state().decisions.borrow_mut();
        let entry = decisions.vacant_entry();
        write(self.0.told(), Some(entry.key()), slots);
        entry.insert(self.0);
    }
}

impl IntoJs for Held {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        let mut slots = vec![0; HEAD + STANDING * self.0.standings().len()];
        self.write(context, Cell::from_mut(&mut slots[..]).as_slice_of_cells());
        context.give(Slots(slots))
    }
}

/// `(heldDecision)`.
pub fn free(call: &Call<'_>) -> Result<Value> {
    call.state().decisions.borrow_mut().try_remove(call.handle(0)?);
    call.give(())
}

fn set<const N: usize>(to: &[Cell<u64>], slots: [u64; N]) {
    to.iter().zip(slots).for_each(|(to, slot)| to.set(slot));
}

fn words(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << 32
}

/// All numbers are at most 2^53, and a signed conversion takes one instruction.
fn double(number: u64) -> u64 {
    (number as i64 as f64).to_bits()
}

fn us(duration: Option<Duration>) -> u64 {
    let us = |duration: Duration| duration.as_secs() * 1_000_000 + u64::from(duration.subsec_micros());
    duration.map_or((-1.0_f64).to_bits(), |duration| double(us(duration)))
}
