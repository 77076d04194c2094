//! One stripe's tables: entries by fingerprint, what says nothing swept before a table grows.

use hashbrown::HashTable;

use crate::algorithm::State;
use crate::clock::{self, Now, Time};
use crate::store::bucket::Fingerprint;

/// Room that a table begins with.
const LEAST_ROOM: usize = 8;

/// How long what says nothing is kept: a second, or a day under a given clock, as on Redis.
const MARGIN_US: u64 = 1_000_000;
const GIVEN_MARGIN_US: u64 = 86_400_000_000;

/// Given times have a space of their own, so that no test writes future times under real keys.
#[derive(Default)]
pub(super) struct Tables {
    system: Table,
    given: Table,
}

impl Tables {
    pub fn of(&mut self, time: Time) -> &mut Table {
        match time.given() {
            Some(_) => &mut self.given,
            None => &mut self.system,
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.system.entries.len() + self.given.entries.len()
    }
}

#[derive(Default)]
pub(super) struct Table {
    entries: HashTable<Entry>,
}

struct Entry {
    fingerprint: Fingerprint,
    state: State,
}

impl Table {
    pub fn get(&self, fingerprint: Fingerprint) -> Option<&State> {
        self.entries.find(fingerprint.low, |entry| entry.fingerprint == fingerprint).map(|entry| &entry.state)
    }

    pub fn get_mut(&mut self, fingerprint: Fingerprint) -> Option<&mut State> {
        let entry = self.entries.find_mut(fingerprint.low, |entry| entry.fingerprint == fingerprint);
        entry.map(|entry| &mut entry.state)
    }

    pub fn remove(&mut self, fingerprint: Fingerprint) {
        if let Ok(entry) = self.entries.find_entry(fingerprint.low, |entry| entry.fingerprint == fingerprint)
        {
            entry.remove();
        }
    }

    /// Adds a state that is not there yet; `time` is what a sweep goes by.
    pub fn insert(&mut self, fingerprint: Fingerprint, state: State, time: Time) {
        if self.entries.len() == self.entries.capacity() {
            self.make_room(time);
        }
        let entry = Entry { fingerprint, state };
        self.entries.insert_unique(fingerprint.low, entry, |entry| entry.fingerprint.low);
    }

    /// Before a table grows it drops what says nothing any more: the work is paid by the inserts
    /// since the last time, and no thread is needed.
    fn make_room(&mut self, time: Time) {
        // Kept a little longer, so that a clock that steps back finds what it had written.
        let margin = if time.given().is_some() { GIVEN_MARGIN_US } else { MARGIN_US };
        let Now { steady, wall } = clock::resolve(time, true);
        let past = Now { steady: steady.saturating_sub(margin), wall: wall.saturating_sub(margin) };
        self.entries.retain(|entry| !entry.state.is_spent(past));
        let capacity = self.entries.capacity();
        if self.entries.len() >= capacity.div_ceil(2) {
            self.entries.reserve((capacity + 1).max(LEAST_ROOM), |entry| entry.fingerprint.low);
        }
    }
}
