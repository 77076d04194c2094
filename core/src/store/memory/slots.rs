//! A table of states in the order of their fingerprints: open addressing, where each state lies at or
//! just after the place that its fingerprint names.
//!
//! The place follows from the half of the fingerprint that is known first; the other half is only
//! compared. Order makes a search for what is not there as short as one for what is, and growing a walk. With 32
//! bytes a slot, two to a cache line, and seven of eight filled before it grows by a quarter, a key takes
//! about 40 bytes, and finding it nearly always one line.

use crate::algorithm::State;
use crate::store::bucket::Fingerprint;

/// Room that a table begins with.
const LEAST_ROOM: usize = 8;

/// Slots beyond the last named place, for what is pushed over it.
const SLACK: usize = 16;

#[derive(Default)]
#[repr(C)]
pub(super) struct Slots {
    /// The last one is always empty, so that every search ends.
    slots: Box<[Option<Entry>]>,
    /// How many places fingerprints name.
    places: usize,
    filled: usize,
}

struct Entry {
    fingerprint: Fingerprint,
    state: State,
}

const _: () = assert!(size_of::<Option<Entry>>() == 32);

/// Where a state lies, or the slot before which it would; good until the slots change.
#[derive(Clone, Copy)]
pub(super) enum Place {
    At(usize),
    Before(usize),
}

impl Slots {
    pub fn len(&self) -> usize {
        self.filled
    }

    /// How many slots there are to look at, filled or not.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Whether one more would fill them too densely.
    pub fn are_full(&self) -> bool {
        self.filled >= self.places / 8 * 7
    }

    #[inline]
    pub fn find(&self, fingerprint: Fingerprint) -> Place {
        let mut slot = home(fingerprint, self.places);
        while let Some(Some(entry)) = self.slots.get(slot) {
            if entry.fingerprint.high >= fingerprint.high {
                if entry.fingerprint == fingerprint {
                    return Place::At(slot);
                }
                if entry.fingerprint.high > fingerprint.high {
                    break;
                }
            }
            slot += 1;
        }
        Place::Before(slot)
    }

    #[inline]
    pub fn get(&self, slot: usize) -> Option<&State> {
        Some(&self.slots.get(slot)?.as_ref()?.state)
    }

    #[inline]
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut State> {
        Some(&mut self.slots.get_mut(slot)?.as_mut()?.state)
    }

    /// Adds a state that is not there yet.
    pub fn insert(&mut self, fingerprint: Fingerprint, state: State) {
        loop {
            if let Place::Before(slot) = self.find(fingerprint)
                && let Some(free) =
                    self.slots.get(slot..).and_then(|rest| rest.iter().position(Option::is_none))
                && slot + free + 1 < self.slots.len()
            {
                // The empty slot moves to its place; nearly always a few steps.
                for empty in (slot..slot + free).rev() {
                    self.slots.swap(empty, empty + 1);
                }
                self.slots[slot] = Some(Entry { fingerprint, state });
                self.filled += 1;
                return;
            }
            self.grow();
        }
    }

    /// Removes what lies in a slot; those that it had pushed on move back.
    pub fn remove(&mut self, slot: usize) {
        if self.slots[slot].take().is_none() {
            return;
        }
        self.filled -= 1;
        let moved = self.slots[slot + 1..].iter().enumerate().take_while(|&(distance, entry)| {
            let home = entry.as_ref().map(|entry| home(entry.fingerprint, self.places));
            home.is_some_and(|home| home <= slot + distance)
        });
        let moved = moved.count();
        self.slots[slot..=slot + moved].rotate_left(1);
    }

    /// Keeps those that `keep` says.
    pub fn retain(&mut self, mut keep: impl FnMut(&State) -> bool) {
        let mut slot = 0;
        while slot < self.slots.len() {
            match self.get(slot) {
                // What moves back into this slot is looked at next.
                Some(state) if !keep(state) => self.remove(slot),
                _ => slot += 1,
            }
        }
    }

    /// Room for a quarter more: larger steps would leave more of it empty.
    pub fn grow(&mut self) {
        let mut places = self.places;
        loop {
            places = places + places / 4 + LEAST_ROOM;
            // Where so many lie behind the last place that the slack is short, more room parts them.
            let slack = SLACK + places / 64;
            let mut entries = std::mem::take(&mut self.slots).into_vec();
            let mut slots: Vec<Option<Entry>> = Vec::with_capacity(places + slack);
            let mut fits = true;
            for entry in &mut entries {
                let Some(known) = entry else { continue };
                let home = home(known.fingerprint, places);
                slots.resize_with(home.max(slots.len()), || None);
                slots.push(entry.take());
                fits &= slots.len() < places + slack;
            }
            if fits {
                slots.resize_with(places + slack, || None);
            }
            self.slots = slots.into_boxed_slice();
            self.places = places;
            if fits {
                return;
            }
        }
    }
}

/// The place that a fingerprint names: fingerprints in order name places in order.
#[inline]
fn home(fingerprint: Fingerprint, places: usize) -> usize {
    ((u128::from(fingerprint.high) * places as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::algorithm::fixed_window::Window;

    fn state(end: u64) -> State {
        State::Window(Window { end, count: 1 })
    }

    fn end_of(slots: &Slots, fingerprint: Fingerprint) -> Option<u64> {
        match slots.find(fingerprint) {
            Place::At(slot) => slots.get(slot).map(State::end),
            Place::Before(_) => None,
        }
    }

    /// Against a map of the standard library, under three kinds of fingerprints: spread, crowded at one
    /// end, and alike in half their bits.
    #[test]
    fn it_keeps_what_a_map_keeps() {
        for crowding in [0, 40, 63] {
            let (mut slots, mut map) = (Slots::default(), BTreeMap::new());
            let mut random = 0x2545_f491_4f6c_dd1d_u64;
            for round in 0..6_000_u64 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let high = u64::MAX - ((random % 512) << 55 >> crowding);
                let fingerprint = Fingerprint { high, low: random >> 60 };
                let place = slots.find(fingerprint);
                match (place, map.contains_key(&(high, fingerprint.low))) {
                    (Place::At(slot), true) if round % 3 == 0 => {
                        slots.remove(slot);
                        map.remove(&(high, fingerprint.low));
                    }
                    (Place::At(slot), true) => {
                        *slots.get_mut(slot).unwrap() = state(round);
                        map.insert((high, fingerprint.low), round);
                    }
                    (Place::Before(_), false) => {
                        if slots.are_full() {
                            slots.grow();
                        }
                        slots.insert(fingerprint, state(round));
                        map.insert((high, fingerprint.low), round);
                    }
                    _ => panic!("round {round}: {fingerprint:?} is in one of them only"),
                }
                if round % 1_000 == 999 {
                    slots.retain(|state| state.end() % 2 == 0);
                    map.retain(|_, end| *end % 2 == 0);
                }
                assert_eq!(slots.len(), map.len());
            }
            for (&(high, low), &end) in &map {
                assert_eq!(end_of(&slots, Fingerprint { high, low }), Some(end));
            }
        }
    }

    #[test]
    fn it_grows_in_small_steps() {
        let mut slots = Slots::default();
        let spread = |n: u64| Fingerprint { high: n.wrapping_mul(0x9e37_79b9_7f4a_7c15), low: n };
        for n in 1..=100_000 {
            if slots.are_full() {
                slots.grow();
            }
            slots.insert(spread(n), state(n));
            assert!(n < 1_000 || slots.slots() * 32 < n as usize * 49, "{} slots for {n}", slots.slots());
        }
        assert!((1..=100_000).all(|n| end_of(&slots, spread(n)) == Some(n)));
    }
}
