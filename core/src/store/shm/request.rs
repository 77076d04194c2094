//! Deciding a request: every limit of a policy, for one key, in one part. Of one limit of few numbers it is
//! decided on a copy, and the part is held only to write what was taken, where nothing has changed since;
//! who is refused holds nothing.

use smallvec::{SmallVec, smallvec};

use super::ShmStore;
use super::decide::debt;
use super::decide::{Address, Locked};
use super::kept::{Change, Looked};
use super::mapped::Mapped;
use super::part::{Control, Part, at_least};
use super::room::{Moment, Need};
use super::slot::{Place, Stored, fingerprint, space};
use crate::Result;
use crate::algorithm::{Decided, Found, Seen, State};
use crate::clock::{Now, Time};
use crate::receipt::Lease;
use crate::store::bucket::{Bucket, Fingerprint};
use crate::store::charge::{Charge, Mode, Outcome, Request, Verdict};

/// How often it is tried without waiting for anybody.
const TRIES: usize = 3;

impl ShmStore {
    /// Decides a request, and answers what `answer` makes of the verdict.
    #[inline]
    pub fn decide_request<T>(
        &self,
        request: &Request<'_>,
        mode: Mode,
        time: Time,
        answer: impl FnOnce(Verdict<'_>) -> T,
    ) -> Result<T> {
        let (mapped, read) = self.mapped(time);
        let key = mapped.key(request.key);
        let part = &mapped.parts[mapped.part_index(key)];
        let is_quick = matches!((mode, request.cost), (Mode::Acquire, 1..) | (Mode::Peek, _));
        if is_quick
            && let Some(own) = mapped.owners.own()
            && part.control(Control::Blocks).get() == 0
        {
            let asked = Asked { key, time, read, cost: request.cost, is_peek: mode == Mode::Peek, own };
            for _ in 0..TRIES {
                if let [bucket] = request.buckets {
                    match quick(part, bucket, asked) {
                        Quick::Decided(admitted, now, seen) => {
                            return Ok(answer(Verdict::new(admitted, now, &[seen])));
                        }
                        Quick::Changed => continue,
                        Quick::NotSo => break,
                    }
                }
                match all_quick(part, request.buckets, asked) {
                    Quick::Decided(admitted, now, seen) => {
                        return Ok(answer(Verdict::new(admitted, now, &seen)));
                    }
                    Quick::Changed => {}
                    Quick::NotSo => break,
                }
            }
        }
        if let [bucket] = request.buckets
            && mode != Mode::Charge
            && let Some((admitted, now, seen, lease)) =
                self.decide_one((mapped, read), (bucket, key), request.cost, mode, time)?
        {
            return Ok(answer(Verdict { admitted, now, seen: &[seen], lease }));
        }
        let outcome = self.decide_charges((mapped, read), request, key, mode, time);
        Ok(answer(outcome?.verdict()))
    }

    /// Decides about one limit: a list, a new key, or what others are busy with. None where a key of the part
    /// is blocked.
    fn decide_one(
        &self,
        (mapped, read): (&Mapped, Now),
        (bucket, key): (&Bucket, Fingerprint),
        cost: u64,
        mode: Mode,
        time: Time,
    ) -> Result<Option<(bool, Now, Seen, Lease)>> {
        let part = &mapped.parts[mapped.part_index(key)];
        let mut guard = part.lock(mapped.holder(self.timeout())?)?;
        if part.control(Control::Blocks).get() != 0 {
            return Ok(None);
        }
        let now = guard.time(time, read);
        let (at, algorithm) = (fingerprint(bucket.with_key(key), time), bucket.algorithm());
        let looked = Looked::new(part, at, algorithm, now, cost)?;
        let Looked { slot, kept, mut seen, found, admits } = looked;
        let takes = mode == Mode::Acquire && cost > 0;
        if !takes || (!admits && found == Found::Sound) {
            return Ok(Some((admits, now, seen, Lease::default())));
        }
        let taken = if admits { cost } else { 0 };
        if admits {
            seen = algorithm.charged(seen, now, cost);
        }
        let lease =
            if admits && bucket.limit().is_concurrency() { Lease::unique() } else { Lease::default() };
        let own = slot.map_or([usize::MAX], |slot| [slot]);
        let moment = Moment { time, now, mapped };
        let need =
            Need { moment, debt: debt(algorithm, &seen, now), own: &own, refuses: self.refuses_when_full() };
        let change = Change { seen, found, now, taken, lease };
        if let Some(written) = change.written(&mut guard, algorithm, kept, need)? {
            if slot.is_some() || guard.make_room(1, need)? {
                guard.keep((slot, at), written, time)?;
            } else {
                guard.untake_all(written.stored);
            }
        }
        guard.close();
        Ok(Some((admits, now, seen, lease)))
    }

    /// Decides as any charges are decided.
    fn decide_charges(
        &self,
        (mapped, read): (&Mapped, Now),
        request: &Request<'_>,
        key: Fingerprint,
        mode: Mode,
        time: Time,
    ) -> Result<Outcome> {
        let part = mapped.part_index(key);
        let mut locked = Locked(smallvec![mapped.parts[part].lock(mapped.holder(self.timeout())?)?]);
        let moment = locked.moment(mapped, time, read);
        let charges: SmallVec<[Charge<'_>; 4]> = request.charges().collect();
        let address =
            |bucket: &Bucket| Address { part, key, bucket: fingerprint(bucket.with_key(key), time) };
        let addresses: SmallVec<[Address; 4]> = request.buckets.iter().map(address).collect();
        self.decide_locked(&mut locked, &charges, &addresses, mode, moment)
    }
}

/// What is asked of one key.
#[derive(Clone, Copy)]
struct Asked {
    key: Fingerprint,
    time: Time,
    read: Now,
    cost: u64,
    is_peek: bool,
    own: u64,
}

/// What came of deciding on a copy.
enum Quick<S> {
    Decided(bool, Now, S),
    /// Somebody held the part meanwhile.
    Changed,
    /// It takes more than a few numbers that are there.
    NotSo,
}

impl Asked {
    /// The time to decide at, and the latest that the part knows.
    #[inline]
    fn now(&self, part: &Part) -> (Now, u64) {
        let known = part.control(Control::Last).get();
        (if self.time.given().is_some() { self.read } else { at_least(self.read, known) }, known)
    }

    /// The state of a limit, and where it lies; none where it is no few numbers.
    #[inline]
    fn find(&self, part: &Part, bucket: &Bucket) -> Option<(usize, Stored, State)> {
        let Place::At(slot) = part.find(fingerprint(bucket.with_key(self.key), self.time)) else {
            return None;
        };
        let stored = part.stored(slot);
        Some((slot, stored, stored.small()?))
    }
}

#[inline(always)]
fn quick(part: &Part, bucket: &Bucket, asked: Asked) -> Quick<Seen> {
    let Asked { time, cost, .. } = asked;
    let Some(version) = part.version() else { return Quick::NotSo };
    let Some((slot, stored, mut state)) = asked.find(part, bucket) else { return Quick::NotSo };
    let (now, known) = asked.now(part);
    let unless_changed = |admitted, seen| {
        if part.is_still(version) { Quick::Decided(admitted, now, seen) } else { Quick::Changed }
    };
    if asked.is_peek {
        let (seen, _) = bucket.algorithm().see(Some(&state), now, cost);
        return unless_changed(bucket.algorithm().admits(&seen, now, cost), seen);
    }
    let Some(Decided { admitted, found, seen }) = bucket.algorithm().decide(&mut state, now, cost) else {
        return Quick::NotSo;
    };
    if !admitted && found == Found::Sound {
        return unless_changed(false, seen);
    }
    let Some([first, second]) = state.words() else { return Quick::NotSo };
    let Some(mut guard) = part.lock_at(version, asked.own) else { return Quick::Changed };
    guard.saw(time, now, known);
    let words = &part.slots[slot];
    if second == stored.words[1] {
        // One word is whole by itself.
        words[1].set(first | space(time));
    } else if guard.put(&words[1], first | space(time)).and_then(|()| guard.put(&words[2], second)).is_err() {
        return Quick::NotSo;
    }
    guard.close();
    Quick::Decided(admitted, now, seen)
}

/// Takes from all of them, or tells what each said where one refuses.
#[inline]
fn all_quick(part: &Part, buckets: &[Bucket], asked: Asked) -> Quick<SmallVec<[Seen; 8]>> {
    let Asked { time, cost, is_peek, .. } = asked;
    let Some(version) = part.version() else { return Quick::NotSo };
    let (now, known) = asked.now(part);
    let mut taken: SmallVec<[(usize, [u64; 2]); 8]> = SmallVec::new();
    let mut all: SmallVec<[Seen; 8]> = SmallVec::new();
    for bucket in buckets {
        if is_peek {
            break;
        }
        let Some((slot, _, mut state)) = asked.find(part, bucket) else { return Quick::NotSo };
        let Some(Decided { admitted, found, seen }) = bucket.algorithm().decide(&mut state, now, cost) else {
            return Quick::NotSo;
        };
        if !admitted {
            if found != Found::Sound {
                return Quick::NotSo;
            }
            break;
        }
        let Some(words) = state.words() else { return Quick::NotSo };
        taken.push((slot, words));
        all.push(seen);
    }
    if all.len() < buckets.len() {
        all.clear();
        let mut admitted = true;
        for bucket in buckets {
            let Some((_, _, state)) = asked.find(part, bucket) else { return Quick::NotSo };
            let (seen, found) = bucket.algorithm().see(Some(&state), now, cost);
            if !is_peek && found != Found::Sound {
                return Quick::NotSo;
            }
            admitted &= bucket.algorithm().admits(&seen, now, cost);
            all.push(seen);
        }
        return match part.is_still(version) {
            true if is_peek || !admitted => Quick::Decided(admitted, now, all),
            _ => Quick::Changed,
        };
    }
    let Some(mut guard) = part.lock_at(version, asked.own) else { return Quick::Changed };
    guard.saw(time, now, known);
    for (slot, [first, second]) in taken {
        let words = &part.slots[slot];
        if guard.put(&words[1], first | space(time)).and_then(|()| guard.put(&words[2], second)).is_err() {
            return Quick::NotSo;
        }
    }
    guard.close();
    Quick::Decided(true, now, all)
}
