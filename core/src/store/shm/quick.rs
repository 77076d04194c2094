//! Deciding by a few numbers that are there, on copies of them. One limit holds nothing but its chain, and that
//! only to write what was taken, where nothing has changed since; who is refused holds nothing.

use std::sync::atomic::{Ordering, fence};

use smallvec::SmallVec;

use super::chain;
use super::mapped::Mapped;
use super::part::{Control, Guard, Part};
use super::slot::{Place, Stored, fingerprint, space};
use crate::algorithm::{Decided, Found, Seen, State};
use crate::clock::{Now, Time};
use crate::receipt::Receipt;
use crate::store::bucket::{Bucket, Fingerprint};

/// What is asked of one key.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub mapped: &'a Mapped,
    pub key: Fingerprint,
    pub time: Time,
    pub cost: u64,
    pub is_peek: bool,
}

/// What came of deciding on a copy.
pub(super) enum Quick<S> {
    Decided(bool, Now, S),
    /// Somebody holds the chain, or held it meanwhile.
    Held,
    /// It takes more than a few numbers that are there, or than one word to be whole.
    NotSo,
}

/// A chain as it was before anything was read of it, and the state of a limit in it.
struct Read {
    home: usize,
    was: u64,
    slot: usize,
    stored: Stored,
    at: u64,
}

/// What came of writing.
enum Followed {
    Written,
    Held,
    NotSo,
}

impl<'a> Asked<'a> {
    #[inline]
    pub fn part(&self) -> &'a Part {
        &self.mapped.parts[self.mapped.part_index(self.key)]
    }

    /// What is seen where nothing is kept.
    fn tell_nothing(&self, part: &Part, bucket: &Bucket) -> Quick<Seen> {
        let at = fingerprint(bucket.with_key(self.key), self.time);
        let home = part.home(at);
        let was = part.head(home).get_first();
        let (Place::Nowhere, _) = part.find_behind(home, was, at) else { return Quick::NotSo };
        let now = self.mapped.now(self.time);
        let (seen, _) = bucket.algorithm().see(None, now, self.cost);
        fence(Ordering::Acquire);
        if chain::holder(was) != 0 || part.head(home).get() != was {
            return Quick::Held;
        }
        Quick::Decided(bucket.algorithm().admits(&seen, now, self.cost), now, seen)
    }

    /// The state of a limit, a copy; what is in the way where there is none of few numbers.
    #[inline(always)]
    fn find<S>(&self, part: &Part, bucket: &Bucket) -> Result<(Read, State), Quick<S>> {
        let at = fingerprint(bucket.with_key(self.key), self.time);
        let home = part.home(at);
        let was = part.head(home).get_first();
        if chain::holder(was) != 0 {
            return Err(Quick::Held);
        }
        let (Place::At(slot), _) = part.find_behind(home, was, at) else { return Err(Quick::NotSo) };
        let stored = part.stored(slot);
        let state = stored.small().ok_or(Quick::NotSo)?;
        Ok((Read { home, was, slot, stored, at }, state))
    }
}

impl Read {
    /// Whether nobody has held the chain since.
    #[inline]
    fn is_still(&self, part: &Part) -> bool {
        fence(Ordering::Acquire);
        part.head(self.home).get() == self.was
    }

    /// Writes what follows, where nothing has changed since: a word at a time, each time whole.
    #[inline(always)]
    fn follow(&self, part: &Part, state: &State, mapped: &Mapped) -> Followed {
        let (Some([first, numbers]), Some(own)) = (self.stored.followed_by(state), mapped.owners.own())
        else {
            return Followed::NotSo;
        };
        let head = part.head(self.home);
        let held = chain::held(self.was, own);
        if !head.exchange(self.was, held) {
            return Followed::Held;
        }
        let is_there = self.is_there(part);
        if is_there {
            let words = &part.slots[self.slot];
            if numbers != self.stored.words[1] {
                words[1].set(numbers);
            }
            words[0].set(first);
        }
        head.set(chain::released(held));
        if is_there { Followed::Written } else { Followed::Held }
    }

    /// Whether what was read is still there, while the chain is held: a version comes again after a million
    /// others.
    #[inline]
    fn is_there(&self, part: &Part) -> bool {
        part.stored(self.slot) == self.stored && part.slots[self.slot][2].get() == self.at
    }
}

/// Decides about one limit.
#[inline(always)]
pub(super) fn decide_one(bucket: &Bucket, asked: Asked<'_>) -> Quick<Seen> {
    let Asked { mapped, time, cost, is_peek, .. } = asked;
    let part = asked.part();
    if part.control(Control::Blocks).get() != 0 {
        return Quick::NotSo;
    }
    let (read, mut state) = match asked.find(part, bucket) {
        Ok(found) => found,
        Err(Quick::NotSo) if is_peek => return asked.tell_nothing(part, bucket),
        Err(why) => return why,
    };
    // After the head: who held the chain before had read it before.
    let now = mapped.now(time);
    let unless_changed = |admitted, seen| {
        if read.is_still(part) { Quick::Decided(admitted, now, seen) } else { Quick::Held }
    };
    if is_peek {
        let (seen, found) = bucket.algorithm().see(Some(&state), now, cost);
        if found == Found::Future && time.given().is_none() {
            return Quick::NotSo;
        }
        return unless_changed(bucket.algorithm().admits(&seen, now, cost), seen);
    }
    let Some(Decided { admitted, found: Found::Sound, seen }) =
        bucket.algorithm().decide(&mut state, now, cost)
    else {
        return Quick::NotSo;
    };
    if !admitted {
        return unless_changed(false, seen);
    }
    match read.follow(part, &state, mapped) {
        Followed::Written => Quick::Decided(true, now, seen),
        Followed::Held => Quick::Held,
        Followed::NotSo => Quick::NotSo,
    }
}

/// Gives back up to `units` of one limit; how many were.
pub(super) fn give_back(
    bucket: &Bucket,
    asked: Asked<'_>,
    (units, receipt, undo): (u64, &Receipt, bool),
) -> Quick<u64> {
    let part = asked.part();
    let (read, mut state) = match asked.find(part, bucket) {
        Ok(found) => found,
        Err(why) => return why,
    };
    let now = asked.mapped.now(asked.time);
    if bucket.algorithm().see(Some(&state), now, 0).1 != Found::Sound {
        return Quick::NotSo;
    }
    let given = bucket.algorithm().refund(&mut state, now, units, receipt, undo);
    if given == 0 {
        return if read.is_still(part) { Quick::Decided(true, now, 0) } else { Quick::Held };
    }
    match read.follow(part, &state, asked.mapped) {
        Followed::Written => Quick::Decided(true, now, given),
        Followed::Held => Quick::Held,
        Followed::NotSo => Quick::NotSo,
    }
}

/// Decides about all of a policy's limits.
#[inline]
pub(super) fn decide_all(buckets: &[Bucket], asked: Asked<'_>) -> Quick<SmallVec<[Seen; 8]>> {
    let Asked { mapped, time, cost, is_peek, .. } = asked;
    let part = asked.part();
    if part.control(Control::Blocks).get() != 0 {
        return Quick::NotSo;
    }
    let mut all: SmallVec<[(Read, State); 4]> = SmallVec::new();
    for bucket in buckets {
        match asked.find(part, bucket) {
            Ok(found) => all.push(found),
            Err(why) => return why,
        }
    }
    let now = mapped.now(time);
    let mut seen: SmallVec<[Seen; 8]> = SmallVec::new();
    if !is_peek {
        for (bucket, (_, state)) in buckets.iter().zip(&mut all) {
            match bucket.algorithm().decide(state, now, cost) {
                Some(Decided { admitted: true, found: Found::Sound, seen: after }) => seen.push(after),
                Some(Decided { found: Found::Sound, .. }) => break,
                _ => return Quick::NotSo,
            }
        }
    }
    if seen.len() < buckets.len() {
        return tell_all(buckets, &all, asked, now);
    }
    let Some(own) = mapped.owners.own() else { return Quick::NotSo };
    let Some(mut guard) = part.lock_now(own) else { return Quick::Held };
    if !all.iter().all(|(read, _)| guard.hold_still(read, own)) {
        return Quick::Held;
    }
    for (read, state) in &all {
        let Some([first, numbers]) = state.words() else { return Quick::NotSo };
        let words = &part.slots[read.slot];
        if guard.put(&words[0], first | space(time)).and_then(|()| guard.put(&words[1], numbers)).is_err() {
            return Quick::NotSo;
        }
    }
    guard.close();
    Quick::Decided(true, now, seen)
}

/// What all of them say, where one refuses or nothing is taken.
fn tell_all(
    buckets: &[Bucket],
    all: &[(Read, State)],
    asked: Asked<'_>,
    now: Now,
) -> Quick<SmallVec<[Seen; 8]>> {
    let Asked { time, cost, is_peek, .. } = asked;
    let part = asked.part();
    let (mut admitted, mut told) = (true, SmallVec::new());
    for (bucket, (read, _)) in buckets.iter().zip(all) {
        let Some(state) = read.stored.small() else { return Quick::NotSo };
        let (seen, found) = bucket.algorithm().see(Some(&state), now, cost);
        if found != Found::Sound && !(is_peek && time.given().is_some()) {
            return Quick::NotSo;
        }
        admitted &= bucket.algorithm().admits(&seen, now, cost);
        told.push(seen);
    }
    if all.iter().all(|(read, _)| read.is_still(part)) && (is_peek || !admitted) {
        Quick::Decided(admitted, now, told)
    } else {
        Quick::Held
    }
}

impl Guard<'_> {
    /// Holds a chain that nobody has held since it was read.
    #[inline]
    fn hold_still(&mut self, read: &Read, own: u64) -> bool {
        if !self.chains.contains(&read.home) {
            if !self.part.head(read.home).exchange(read.was, chain::held(read.was, own)) {
                return false;
            }
            self.chains.push(read.home);
        }
        read.is_there(self.part)
    }
}
