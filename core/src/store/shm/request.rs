//! Deciding a request: every limit of a policy, for one key, in one part. Of one limit of few numbers it is
//! decided on a copy, and its chain is held only to write what was taken, where nothing has changed since;
//! who is refused holds nothing.

use std::sync::atomic::{Ordering, fence};

use smallvec::SmallVec;

use super::ShmStore;
use super::chain;
use super::decide::{Address, debt};
use super::kept::{Change, Looked};
use super::mapped::Mapped;
use super::part::Control;
use super::room::Need;
use super::slot::{Place, fingerprint};
use crate::Result;
use crate::algorithm::{Decided, Found, Seen};
use crate::clock::{Now, Time};
use crate::receipt::Lease;
use crate::store::bucket::{Bucket, Fingerprint};
use crate::store::charge::{Charge, Mode, Outcome, Request, Verdict};

/// How often it is tried without the part, at first at short intervals.
const TRIES: u32 = 6;
const FIRST_SPINS: u32 = 8;

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
        let mapped = self.mapped();
        let key = mapped.key(request.key);
        if let [bucket] = request.buckets
            && let (Mode::Acquire, 1..) | (Mode::Peek, _) = (mode, request.cost)
        {
            let asked = Asked { mapped, key, time, cost: request.cost, is_peek: mode == Mode::Peek };
            for turn in 0..TRIES {
                match quick(bucket, asked) {
                    Quick::Decided(admitted, now, seen) => {
                        self.look_for_the_file(mapped, time, now);
                        return Ok(answer(Verdict::new(admitted, now, &[seen])));
                    }
                    Quick::Held => (0..FIRST_SPINS << turn).for_each(|_| std::hint::spin_loop()),
                    Quick::NotSo => break,
                }
            }
            if let Some((admitted, now, seen, lease)) = self.decide_one(bucket, asked)? {
                self.look_for_the_file(mapped, time, now);
                return Ok(answer(Verdict { admitted, now, seen: &[seen], lease }));
            }
        }
        let outcome = self.decide_charges(mapped, request, key, mode, time)?;
        self.look_for_the_file(mapped, time, outcome.now);
        Ok(answer(outcome.verdict()))
    }

    /// Decides about one limit: a list, a new key, or what others are busy with. None where a key of the part
    /// is blocked.
    fn decide_one(&self, bucket: &Bucket, asked: Asked<'_>) -> Result<Option<(bool, Now, Seen, Lease)>> {
        let Asked { mapped, key, time, cost, is_peek } = asked;
        let part = &mapped.parts[mapped.part_index(key)];
        let (at, algorithm) = (fingerprint(bucket.with_key(key), time), bucket.algorithm());
        let who = mapped.holder(self.timeout())?;
        let mut guard = part.lock(who)?;
        if part.control(Control::Blocks).get() != 0 {
            return Ok(None);
        }
        guard.hold(part.home(at), who)?;
        let (moment, looked) = mapped.look(time, |now| {
            let looked = Looked::new(part, at, algorithm, now, cost)?;
            let is_future = looked.found == Found::Future;
            Ok((looked, is_future))
        })?;
        let now = moment.now;
        let Looked { slot, kept, mut seen, found, admits } = looked;
        if is_peek || (!admits && found == Found::Sound) {
            return Ok(Some((admits, now, seen, Lease::default())));
        }
        let taken = if admits { cost } else { 0 };
        if admits {
            seen = algorithm.charged(seen, now, cost);
        }
        let lease =
            if admits && bucket.limit().is_concurrency() { Lease::unique() } else { Lease::default() };
        let own = slot.map_or([usize::MAX], |slot| [slot]);
        let debt = debt(algorithm, &seen, now);
        let need = Need { moment, debt, own: &own, who, refuses: self.refuses_when_full() };
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
        mapped: &Mapped,
        request: &Request<'_>,
        key: Fingerprint,
        mode: Mode,
        time: Time,
    ) -> Result<Outcome> {
        let part = mapped.part_index(key);
        let charges: SmallVec<[Charge<'_>; 4]> = request.charges().collect();
        let address =
            |bucket: &Bucket| Address { part, key, bucket: fingerprint(bucket.with_key(key), time) };
        let addresses: SmallVec<[Address; 4]> = request.buckets.iter().map(address).collect();
        let mut locked = self.lock(mapped, &addresses)?;
        self.decide_locked(&mut locked, &charges, &addresses, mode, (mapped, time))
    }
}

/// What is asked of one key.
#[derive(Clone, Copy)]
struct Asked<'a> {
    mapped: &'a Mapped,
    key: Fingerprint,
    time: Time,
    cost: u64,
    is_peek: bool,
}

/// What came of deciding on a copy.
enum Quick {
    Decided(bool, Now, Seen),
    /// Somebody holds the chain, or held it meanwhile.
    Held,
    /// It takes more than a few numbers that are there, or than one word to be whole.
    NotSo,
}

#[inline(always)]
fn quick(bucket: &Bucket, asked: Asked<'_>) -> Quick {
    let Asked { mapped, key, time, cost, is_peek } = asked;
    let part = &mapped.parts[mapped.part_index(key)];
    let at = fingerprint(bucket.with_key(key), time);
    let home = part.home(at);
    let head = part.head(home);
    let was = head.get_first();
    if chain::holder(was) != 0 {
        return Quick::Held;
    }
    if part.control(Control::Blocks).get() != 0 {
        return Quick::NotSo;
    }
    let (Place::At(slot), _) = part.find_behind(home, was, at) else { return Quick::NotSo };
    let stored = part.stored(slot);
    let Some(mut state) = stored.small() else { return Quick::NotSo };
    // After the head: who held the chain before had read it before.
    let now = mapped.now(time);
    let unless_changed = |admitted, seen| {
        fence(Ordering::Acquire);
        if head.get() == was { Quick::Decided(admitted, now, seen) } else { Quick::Held }
    };
    if is_peek {
        let (seen, found) = bucket.algorithm().see(Some(&state), now, cost);
        if found == Found::Future && time.given().is_none() {
            return Quick::NotSo;
        }
        return unless_changed(bucket.algorithm().admits(&seen, now, cost), seen);
    }
    let Some(Decided { admitted, found, seen }) = bucket.algorithm().decide(&mut state, now, cost) else {
        return Quick::NotSo;
    };
    if found != Found::Sound {
        return Quick::NotSo;
    }
    if !admitted {
        return unless_changed(false, seen);
    }
    let (Some([first, numbers]), Some(own)) = (stored.followed_by(&state), mapped.owners.own()) else {
        return Quick::NotSo;
    };
    let held = chain::held(was, own);
    if !head.exchange(was, held) {
        return Quick::Held;
    }
    let words = &part.slots[slot];
    // A version comes again after a million others: what was read must still be there as well.
    if part.stored(slot) != stored || words[2].get() != at {
        head.set(chain::released(held));
        return Quick::Held;
    }
    if numbers != stored.words[1] {
        words[1].set(numbers);
    }
    words[0].set(first);
    head.set(chain::released(held));
    Quick::Decided(true, now, seen)
}
