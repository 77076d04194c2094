//! One stripe's tables: entries by fingerprint, bounded, what says nothing forgotten first.

use hashbrown::HashTable;

use super::Bounds;
use crate::algorithm::State;
use crate::clock::{self, Now, Time};
use crate::store::bucket::Fingerprint;

/// Room that a table begins with.
const LEAST_ROOM: usize = 8;

/// How long what says nothing is kept: a second, or a day under a given clock, as on Redis.
const MARGIN_US: u64 = 1_000_000;
const GIVEN_MARGIN_US: u64 = 86_400_000_000;

/// How many places are looked at to find one to evict. Of entries that are equally likely to be met,
/// the chance that all of so many belong to the tenth that owes most is 10^-12.
const SAMPLE: usize = 12;

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
    blocks: HashTable<Block>,
    /// Where the next search for something to evict begins.
    cursor: usize,
    /// How many were evicted since the whole table was swept.
    since_sweep: usize,
}

struct Entry {
    fingerprint: Fingerprint,
    state: State,
}

/// Until when a key is refused, under any policy.
struct Block {
    key: Fingerprint,
    end: u64,
}

impl Table {
    pub fn get(&self, fingerprint: Fingerprint) -> Option<&State> {
        self.entries.find(fingerprint.low, |entry| entry.fingerprint == fingerprint).map(|entry| &entry.state)
    }

    pub fn get_mut(&mut self, fingerprint: Fingerprint) -> Option<&mut State> {
        let entry = self.entries.find_mut(fingerprint.low, |entry| entry.fingerprint == fingerprint);
        entry.map(|entry| &mut entry.state)
    }

    pub fn remove(&mut self, fingerprint: Fingerprint, bounds: &Bounds) {
        if let Ok(entry) = self.entries.find_entry(fingerprint.low, |entry| entry.fingerprint == fingerprint)
        {
            entry.remove();
            bounds.left(1);
        }
    }

    /// Adds a state that is not there yet; `time` is what eviction goes by.
    pub fn insert(&mut self, fingerprint: Fingerprint, state: State, time: Time, bounds: &Bounds) {
        if bounds.are_reached() && !self.evict(&state, time, bounds) {
            return;
        }
        if self.entries.len() == self.entries.capacity() {
            self.make_room(time, bounds);
        }
        let entry = Entry { fingerprint, state };
        self.entries.insert_unique(fingerprint.low, entry, |entry| entry.fingerprint.low);
        bounds.came();
    }

    /// Whether there is room for one more, or is after forgetting what says nothing.
    pub fn has_room(&mut self, time: Time, bounds: &Bounds) -> bool {
        !bounds.are_reached() || self.sample(time, bounds).0 > 0
    }

    pub fn block(&mut self, key: Fingerprint, end: u64) {
        self.unblock(key);
        self.blocks.insert_unique(key.low, Block { key, end }, |block| block.key.low);
    }

    /// Lifts a block; true when there was one.
    pub fn unblock(&mut self, key: Fingerprint) -> bool {
        let found = self.blocks.find_entry(key.low, |block| block.key == key);
        found.map(|entry| entry.remove()).is_ok()
    }

    /// Until when a key is blocked.
    pub fn blocked(&self, key: Fingerprint, now: u64) -> Option<u64> {
        let block = self.blocks.find(key.low, |block| block.key == key)?;
        (block.end > now).then_some(block.end)
    }

    /// Before a table grows it drops what says nothing any more: the work is paid by the inserts
    /// since the last time, and no thread is needed.
    fn make_room(&mut self, time: Time, bounds: &Bounds) {
        self.sweep(time, margin(time), bounds);
        // The table itself decides whether it grows, or only clears the traces of what was removed.
        let spare = self.entries.capacity() - self.entries.len();
        if spare <= self.entries.len() / 4 {
            self.entries.reserve((spare + 1).max(LEAST_ROOM), |entry| entry.fingerprint.low);
        }
    }

    /// Forgets what has said nothing for so long; how many entries that were.
    fn sweep(&mut self, time: Time, margin: u64, bounds: &Bounds) -> usize {
        let Now { steady, wall } = clock::resolve(time, true);
        let past = Now { steady: steady.saturating_sub(margin), wall: wall.saturating_sub(margin) };
        let before = self.entries.len();
        self.entries.retain(|entry| !entry.state.is_spent(past));
        self.since_sweep = 0;
        let forgotten = before - self.entries.len();
        bounds.left(forgotten);
        forgotten
    }

    /// Makes a place for a new state in a store that is full: first by what says nothing, then by the
    /// entry of a sample that owes least. False when that is the new one.
    fn evict(&mut self, new: &State, time: Time, bounds: &Bounds) -> bool {
        let (spent, least) = self.sample(time, bounds);
        if spent > 0 {
            return true;
        }
        // Something that says nothing may lie elsewhere: a look at all of it, so seldom that it costs no
        // more than a few looks each time.
        self.since_sweep += 1;
        if self.since_sweep > self.entries.len() / 4 && self.sweep(time, 0, bounds) > 0 {
            return true;
        }
        bounds.evicted();
        let debt = new.debt(clock::resolve(time, true));
        let Some((_, place)) = least.filter(|&(least, _)| least < debt) else { return false };
        if let Ok(entry) = self.entries.get_bucket_entry(place) {
            entry.remove();
            bounds.left(1);
        }
        true
    }

    /// Goes on through the table for a few entries: how many of them said nothing and were
    /// forgotten, and which of the others owes least, with its debt.
    fn sample(&mut self, time: Time, bounds: &Bounds) -> (usize, Option<(u128, usize)>) {
        let now = clock::resolve(time, true);
        let places = self.entries.num_buckets();
        let (mut least, mut seen, mut spent) = (None, 0, 0);
        for _ in 0..places {
            self.cursor = if self.cursor + 1 < places { self.cursor + 1 } else { 0 };
            let Some(entry) = self.entries.get_bucket(self.cursor) else { continue };
            let debt = entry.state.debt(now);
            if entry.state.is_spent(now) {
                if let Ok(entry) = self.entries.get_bucket_entry(self.cursor) {
                    entry.remove();
                    spent += 1;
                }
            } else if least.is_none_or(|(least, _)| debt < least) {
                least = Some((debt, self.cursor));
            }
            seen += 1;
            if seen == SAMPLE {
                break;
            }
        }
        bounds.left(spent);
        (spent, least)
    }
}

/// How much longer than it must be a state is kept while there is room, so that a clock that steps back
/// finds what it had written.
fn margin(time: Time) -> u64 {
    if time.given().is_some() { GIVEN_MARGIN_US } else { MARGIN_US }
}
