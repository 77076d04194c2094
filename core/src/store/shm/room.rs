//! What is forgotten to make room: what says nothing any more, else what owes least.

use super::arena::Block;
use super::layout::GRANULE;
use super::mapped::Mapped;
use super::part::{Control, Guard, Holder};
use super::slot::{Kind, Stored};
use crate::clock::{Now, Time};
use crate::{Error, ErrorKind, Result};

/// How many states are looked at to find one to evict. Of states that are equally likely to be met,
/// the chance that all of so many belong to the tenth that owes most is 10^-12.
const SAMPLE: usize = 12;

/// When something is asked, by its own clock.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub time: Time,
    pub now: Now,
    pub mapped: &'a Mapped,
}

/// Who needs room.
#[derive(Clone, Copy)]
pub(super) struct Need<'a> {
    pub moment: Moment<'a>,
    /// How much the new state owes.
    pub debt: u128,
    /// The slots of the same step.
    pub own: &'a [usize],
    pub who: Holder<'a>,
    /// Whether a new state gets the error `store_full` in place of another's room.
    pub refuses: bool,
}

/// What a look at a few states found.
enum Sample {
    /// One that said nothing, and was forgotten.
    Forgotten,
    /// Which of them owes least, how much and where; none where there are none.
    Least(Option<(u128, usize)>),
}

impl Moment<'_> {
    /// The time by which a state is read; none for one of another clock, which tells nothing of now.
    fn of(&self, stored: Stored) -> Option<Now> {
        match (stored.is_given(), self.time.given()) {
            (false, None) | (true, Some(_)) => Some(self.now),
            (false, Some(_)) => Some(self.mapped.now(Time::STORE)),
            (true, None) => None,
        }
    }

    /// How much forgetting it would lose; 0 of what says nothing, none where it is not to be forgotten.
    fn loss(&self, stored: Stored) -> Option<u128> {
        match self.of(stored) {
            Some(now) if stored.is_spent(now) => Some(0),
            _ if Kind::of(stored.words) == Some(Kind::Block) => None,
            // A test's clock must not forget what is real; whatever is real may forget a test's.
            Some(_) if self.time.given().is_some() && !stored.is_given() => None,
            Some(now) => Some(stored.debt(now).max(1)),
            None => Some(1),
        }
    }
}

impl Guard<'_> {
    /// Goes on through the part for a few states, until one says nothing, which is forgotten.
    fn sample(&mut self, need: Need<'_>, is_of_lists: bool) -> Result<Sample> {
        let part = self.part;
        let cursor = part.control(Control::Cursor);
        let (mut least, mut seen) = (None, 0);
        let mut at = usize::try_from(cursor.get()).unwrap_or(0).min(part.slots.len());
        for _ in 0..part.slots.len() {
            at = if at + 1 < part.slots.len() { at + 1 } else { 0 };
            let stored = part.stored(at);
            let is_meant = match Kind::of(stored.words) {
                None => false,
                Some(Kind::Small | Kind::Block) => !is_of_lists,
                Some(Kind::Log | Kind::Buckets | Kind::Leases) => true,
            };
            if !is_meant || need.own.contains(&at) {
                continue;
            }
            let Some(mut loss) = need.moment.loss(stored) else { continue };
            if loss == 0 {
                let still = |stored| need.moment.loss(stored) == Some(0);
                if self.forget_if(at, need.who, still)? {
                    cursor.set(at as u64);
                    return Ok(Sample::Forgotten);
                }
                // Somebody has taken from it just now.
                loss = need.moment.loss(part.stored(at)).unwrap_or(1).max(1);
            }
            if least.is_none_or(|(least, _)| loss < least) {
                least = Some((loss, at));
            }
            seen += 1;
            if seen == SAMPLE {
                break;
            }
        }
        cursor.set(at as u64);
        Ok(Sample::Least(least))
    }

    /// Forgets all that says nothing; how many states that were.
    fn sweep(&mut self, need: Need<'_>) -> Result<usize> {
        let part = self.part;
        let mut forgotten = 0;
        let is_spent =
            |stored: Stored| Kind::of(stored.words).is_some() && need.moment.loss(stored) == Some(0);
        for slot in 0..part.slots.len() {
            if is_spent(part.stored(slot)) && !need.own.contains(&slot) {
                forgotten += usize::from(self.forget_if(slot, need.who, is_spent)?);
            }
        }
        part.control(Control::SinceSweep).set(0);
        Ok(forgotten)
    }

    /// Makes sure that so many slots are free, before anything of the step is written. False when the new
    /// state is itself the one that owes least: of equals it is not, or whoever came to a store full of
    /// them would be new each time.
    ///
    /// # Errors
    /// `store_full` where nothing is to be evicted.
    pub fn make_room(&mut self, slots: usize, need: Need<'_>) -> Result<bool> {
        while self.part.slots.len() - self.part.used() < slots {
            if !self.evict(need, false)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A block of so many units, which nobody knows of yet; none where others owe more.
    ///
    /// # Errors
    /// As [`make_room`](Self::make_room).
    pub fn make_block(&mut self, units: usize, need: Need<'_>) -> Result<Option<Block>> {
        if Block::granules(units) > self.part.units.len() / GRANULE {
            return Err(Error::unsupported(format!(
                "a list of {units} units of 16 bytes: this shared-memory store was made with room for {} \
                 (log_entries)",
                self.part.units.len()
            )));
        }
        loop {
            if let Some(block) = self.take_block(units) {
                return Ok(Some(block));
            }
            if !self.evict(need, true)? {
                return Ok(None);
            }
        }
    }

    /// Forgets one state: false where none is to be.
    fn evict(&mut self, need: Need<'_>, is_of_lists: bool) -> Result<bool> {
        let part = self.part;
        let Sample::Least(least) = self.sample(need, is_of_lists)? else { return Ok(true) };
        if least.is_none() && self.loose == 0 && !part.adds_up() {
            return Err(self.damaged());
        }
        // Something that says nothing may lie elsewhere: a look at all of it, so seldom that it costs no
        // more than a few looks each time.
        let since_sweep = part.control(Control::SinceSweep);
        since_sweep.set(since_sweep.get().saturating_add(1));
        let is_due = need.refuses || since_sweep.get() > part.used() as u64 / 4;
        if is_due && self.sweep(need)? > 0 {
            return Ok(true);
        }
        let evicted = part.control(Control::Evicted);
        // A block that finds no room is told of.
        evicted.set(evicted.get().wrapping_add(u64::from(need.debt < u128::MAX || least.is_some())));
        if need.refuses {
            return Err(Error::new(
                ErrorKind::StoreFull,
                "the shared-memory store is full: all that lies in this key's part of it is live (max_keys, \
                 log_entries)",
            ));
        }
        let Some((_, slot)) = least.filter(|&(least, _)| least <= need.debt) else { return Ok(false) };
        self.forget_if(slot, need.who, |stored| Kind::of(stored.words).is_some())
    }
}
