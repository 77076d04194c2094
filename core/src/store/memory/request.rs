//! Deciding a request: every limit of a policy, for one key, under one lock. This is what nearly every
//! call does, so it does nothing else.

use smallvec::{SmallVec, smallvec};

use super::MemoryStore;
use super::decide::{Address, Locked};
use super::slots::Place;
use super::stripe::{Guard, Stripe};
use super::table::Table;
use crate::Result;
use crate::algorithm::{Decided, Found, Seen, State};
use crate::clock::{self, Now, Time};
use crate::store::bucket::{Bucket, Fingerprint};
use crate::store::charge::{Charge, Mode, Outcome, Request, Verdict};

impl MemoryStore {
    /// Decides a request, and answers what `answer` makes of the verdict.
    #[inline]
    pub fn decide_request<T>(
        &self,
        request: &Request<'_>,
        mode: Mode,
        time: Time,
        answer: impl FnOnce(Verdict<'_>) -> T,
    ) -> Result<T> {
        let Request { buckets, cost, .. } = *request;
        // Read before the lock is taken, which is then held for less; under it, it only moves forward.
        let read = clock::resolve(time);
        let key = Fingerprint::of(request.key);
        let stripe = self.stripe(key);
        let takes = cost > 0 && mode == Mode::Acquire;
        let is_plain = mode != Mode::Charge && !self.has_blocks();
        if takes
            && is_plain
            && let [bucket] = buckets
            && let Some((now, seen)) = refused(stripe, bucket, key, cost, time, read)
        {
            return Ok(answer(Verdict::new(false, now, &[seen])));
        }

        let mut locked = stripe.lock();
        let now = locked.time(time, read);
        let table = locked.of(time);
        match buckets {
            _ if !is_plain => {}
            [bucket] if !takes => {
                let (seen, admitted) = ask(table, bucket, key, now, cost);
                drop(locked);
                return Ok(answer(Verdict::new(admitted, now, &[seen])));
            }
            _ if !takes => {
                let asked = buckets.iter().map(|bucket| ask(table, bucket, key, now, cost));
                let (seen, admits): (SmallVec<[Seen; 8]>, SmallVec<[bool; 8]>) = asked.unzip();
                let admitted = !admits.contains(&false);
                drop(locked);
                return Ok(answer(Verdict::new(admitted, now, &seen)));
            }
            [bucket] => {
                let at = bucket.with_key(key);
                if let Some(Decided { admitted, found, seen }) = take(table, bucket, at, now, cost) {
                    if !admitted && found == Found::Sound && time.given().is_none() {
                        let words = table.get_mut(at).and_then(|state| state.words());
                        locked.remember(at, words);
                    }
                    drop(locked);
                    return Ok(answer(Verdict::new(admitted, now, &[seen])));
                }
            }
            _ => {
                if let Some(seen) = take_all(table, buckets, key, now, cost) {
                    drop(locked);
                    return Ok(answer(Verdict::new(true, now, &seen)));
                }
            }
        }
        let outcome = self.decide_charges(locked, request, key, mode, (time, now));
        Ok(answer(outcome?.verdict()))
    }

    /// Decides as any charges are decided, where it takes more than a few numbers in place: lists, new
    /// keys, blocks, a policy of which a limit refuses.
    fn decide_charges(
        &self,
        locked: Guard<'_>,
        request: &Request<'_>,
        key: Fingerprint,
        mode: Mode,
        at: (Time, Now),
    ) -> Result<Outcome> {
        let mut locked = Locked(smallvec![(0, locked)]);
        let charges: SmallVec<[Charge<'_>; 4]> = request.charges().collect();
        let address = |bucket: &Bucket| Address { stripe: 0, key, bucket: bucket.with_key(key) };
        let addresses: SmallVec<[Address; 4]> = request.buckets.iter().map(address).collect();
        self.decide_locked(&mut locked, &charges, &addresses, mode, at)
    }
}

/// The answer without the lock, where this bucket was the last to refuse and still does.
#[inline(always)]
fn refused(
    stripe: &Stripe,
    bucket: &Bucket,
    key: Fingerprint,
    cost: u64,
    time: Time,
    read: Now,
) -> Option<(Now, Seen)> {
    if time.given().is_some() {
        return None;
    }
    let (mut state, last) = stripe.refused(bucket.with_key(key))?;
    let now = read.at_least(last);
    match bucket.algorithm().decide(&mut state, now, cost)? {
        Decided { admitted: false, found: Found::Sound, seen } => Some((now, seen)),
        _ => None,
    }
}

/// What a state says, and whether it would admit; nothing is written.
#[inline]
fn ask(table: &Table, bucket: &Bucket, key: Fingerprint, now: Now, cost: u64) -> (Seen, bool) {
    let stored = match table.slots.find(bucket.with_key(key)) {
        Place::At(slot) => table.slots.get(slot),
        Place::Before(_) => None,
    };
    let (seen, _) = bucket.algorithm().see(stored, now, cost);
    (seen, bucket.algorithm().admits(&seen, now, cost))
}

/// Decides and takes in place; none where that takes more than a few numbers.
#[inline(always)]
fn take(table: &mut Table, bucket: &Bucket, at: Fingerprint, now: Now, cost: u64) -> Option<Decided> {
    let Place::At(slot) = table.slots.find(at) else { return None };
    bucket.algorithm().decide(table.slots.get_mut(slot)?, now, cost)
}

/// Takes from all of them in place, one after the other; nothing, and none, where one refuses or
/// needs more than that.
#[inline]
fn take_all(
    table: &mut Table,
    buckets: &[Bucket],
    key: Fingerprint,
    now: Now,
    cost: u64,
) -> Option<SmallVec<[Seen; 8]>> {
    let mut taken: SmallVec<[(usize, State); 8]> = SmallVec::new();
    let mut seen = SmallVec::new();
    for bucket in buckets {
        let Place::At(slot) = table.slots.find(bucket.with_key(key)) else { break };
        let Some(state) = table.slots.get_mut(slot) else { break };
        let Some(before) = state.copied() else { break };
        let decided = bucket.algorithm().decide(state, now, cost);
        taken.push((slot, before));
        match decided {
            Some(Decided { admitted: true, seen: after, .. }) => seen.push(after),
            _ => break,
        }
    }
    if seen.len() == buckets.len() {
        return Some(seen);
    }
    for (slot, before) in taken {
        if let Some(state) = table.slots.get_mut(slot) {
            *state = before;
        }
    }
    None
}
