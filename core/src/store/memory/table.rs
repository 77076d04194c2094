//! One stripe's tables: states by fingerprint, bounded, what says nothing forgotten first.

use super::blocks::Blocks;
use super::bounds::Bounds;
use super::slots::{Place, Slots};
use crate::algorithm::State;
use crate::clock::{Now, Time};
use crate::store::bucket::Fingerprint;

const MARGIN_US: u64 = 1_000_000;
const GIVEN_MARGIN_US: u64 = 86_400_000_000;

/// How long what says nothing is kept, in microseconds: a second, or a day under a given clock, as on Redis.
pub(super) fn margin(time: Time) -> u64 {
    if time.given().is_some() { GIVEN_MARGIN_US } else { MARGIN_US }
}

/// How many states are looked at to find one to evict. Of states that are equally likely to be met,
/// the chance that all of so many belong to the tenth that owes most is 10^-12.
const SAMPLE: usize = 12;

/// Given times have a space of their own, so that no test writes future times under real keys.
#[derive(Default)]
#[repr(C)]
pub(super) struct Tables {
    system: Table,
    given: Table,
}

impl Tables {
    #[inline]
    pub fn of(&mut self, time: Time) -> &mut Table {
        match time.given() {
            Some(_) => &mut self.given,
            None => &mut self.system,
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.system.slots.len() + self.given.slots.len()
    }
}

#[derive(Default)]
#[repr(C)]
pub(super) struct Table {
    pub slots: Slots,
    pub blocks: Blocks,
    /// Where the next search for something to evict begins.
    cursor: usize,
    /// How many were evicted since the whole table was swept.
    since_sweep: usize,
}

/// What a look at a few states found.
enum Sample {
    /// One that said nothing, and was forgotten.
    Forgotten,
    /// Which of them owes least, how much and where; none where there are none.
    Least(Option<(u128, usize)>),
}

impl Table {
    pub fn get_mut(&mut self, fingerprint: Fingerprint) -> Option<&mut State> {
        match self.slots.find(fingerprint) {
            Place::At(slot) => self.slots.get_mut(slot),
            Place::Before(_) => None,
        }
    }

    pub fn remove(&mut self, fingerprint: Fingerprint, bounds: &Bounds) {
        if let Place::At(slot) = self.slots.find(fingerprint) {
            self.slots.remove(slot);
            bounds.left(1);
        }
    }

    /// Adds a state that is not there yet.
    pub fn insert(
        &mut self,
        fingerprint: Fingerprint,
        state: State,
        (time, now): (Time, Now),
        bounds: &Bounds,
    ) {
        if bounds.are_reached() && !self.evict(&state, now, bounds) {
            return;
        }
        if self.slots.are_full() {
            self.make_room(time, now, bounds);
        }
        self.slots.insert(fingerprint, state);
        bounds.came();
    }

    /// Whether there is room for one more, or is after forgetting what says nothing.
    pub fn has_room(&mut self, now: Now, bounds: &Bounds) -> bool {
        !bounds.are_reached() || matches!(self.sample(now, bounds), Sample::Forgotten)
    }

    /// Before a table grows it drops what says nothing any more: the work is paid by the inserts
    /// since the last time, and no thread is needed. What is so much longer kept than it must be, a clock
    /// that steps back still finds.
    fn make_room(&mut self, time: Time, now: Now, bounds: &Bounds) {
        let margin = margin(time);
        let before = Now { steady: now.steady.saturating_sub(margin), wall: now.wall.saturating_sub(margin) };
        let forgotten = self.sweep(before, bounds);
        // Else the next sweep would come too soon to be paid for.
        if forgotten < self.slots.len() / 4 {
            self.slots.grow();
        }
    }

    /// Forgets what says nothing; how many states that were.
    fn sweep(&mut self, now: Now, bounds: &Bounds) -> usize {
        let before = self.slots.len();
        self.slots.retain(|state| !state.is_spent(now));
        self.since_sweep = 0;
        let forgotten = before - self.slots.len();
        bounds.left(forgotten);
        forgotten
    }

    /// Makes a place for a new state in a store that is full: first by what says nothing, then by the
    /// state of a sample that owes least. False when that is the new one: of equals it is not, or whoever
    /// came to a store full of them would be new each time.
    fn evict(&mut self, new: &State, now: Now, bounds: &Bounds) -> bool {
        let Sample::Least(least) = self.sample(now, bounds) else { return true };
        // Something that says nothing may lie elsewhere: a look at all of it, so seldom that it costs no
        // more than a few looks each time.
        self.since_sweep += 1;
        if self.since_sweep > self.slots.len() / 4 && self.sweep(now, bounds) > 0 {
            return true;
        }
        bounds.evicted();
        let debt = new.debt(now);
        let Some((_, slot)) = least.filter(|&(least, _)| least <= debt) else { return false };
        self.slots.remove(slot);
        bounds.left(1);
        true
    }

    /// Goes on through the table for a few states, until one says nothing, which is forgotten: only
    /// that one, so that each part of the store gives up as many as come to it.
    fn sample(&mut self, now: Now, bounds: &Bounds) -> Sample {
        let (mut least, mut seen) = (None, 0);
        for _ in 0..self.slots.slots() {
            let next = self.cursor + 1;
            self.cursor = if next < self.slots.slots() { next } else { 0 };
            let Some(state) = self.slots.get(self.cursor) else { continue };
            if state.is_spent(now) {
                self.slots.remove(self.cursor);
                bounds.left(1);
                return Sample::Forgotten;
            }
            let debt = state.debt(now);
            if least.is_none_or(|(least, _)| debt < least) {
                least = Some((debt, self.cursor));
            }
            seen += 1;
            if seen == SAMPLE {
                break;
            }
        }
        Sample::Least(least)
    }
}
