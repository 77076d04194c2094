//! Deciding a request: every limit of a policy, for one key, in one part. Of one limit of few numbers it is
//! decided on a copy, and the part is held only to write what was taken, where nothing has changed since;
//! who is refused holds nothing.

use smallvec::{SmallVec, smallvec};

use super::ShmStore;
use super::decide::{Address, Locked};
use super::mapped::Mapped;
use super::part::{Control, Part};
use super::slot::{Place, fingerprint, space};
use crate::Result;
use crate::algorithm::{Decided, Found, Seen};
use crate::clock::{Now, Time};
use crate::store::bucket::{Bucket, Fingerprint};
use crate::store::charge::{Charge, Mode, Request, Verdict};

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
        if let [bucket] = request.buckets
            && let (Mode::Acquire, 1..) | (Mode::Peek, _) = (mode, request.cost)
            && let Some(own) = mapped.owners.own()
            && part.control(Control::Blocks).get() == 0
        {
            for _ in 0..TRIES {
                let is_peek = mode == Mode::Peek;
                match quick(part, bucket, (key, time), read, (request.cost, is_peek), own) {
                    Quick::Decided(admitted, now, seen) => {
                        return Ok(answer(Verdict::new(admitted, now, &[seen])));
                    }
                    Quick::Changed => {}
                    Quick::NotSo => break,
                }
            }
        }
        let outcome = self.decide_charges(mapped, request, key, mode, time);
        Ok(answer(outcome?.verdict()))
    }

    /// Decides as any charges are decided.
    fn decide_charges(
        &self,
        mapped: &Mapped,
        request: &Request<'_>,
        key: Fingerprint,
        mode: Mode,
        time: Time,
    ) -> Result<crate::store::charge::Outcome> {
        let part = mapped.part_index(key);
        let mut locked = Locked(smallvec![mapped.parts[part].lock(mapped.holder(self.timeout())?)?]);
        let charges: SmallVec<[Charge<'_>; 4]> = request.charges().collect();
        let address =
            |bucket: &Bucket| Address { part, key, bucket: fingerprint(bucket.with_key(key), time) };
        let addresses: SmallVec<[Address; 4]> = request.buckets.iter().map(address).collect();
        self.decide_locked(mapped, &mut locked, &charges, &addresses, mode, time)
    }
}

/// What came of deciding on a copy.
enum Quick {
    Decided(bool, Now, Seen),
    /// Somebody held the part meanwhile.
    Changed,
    /// It takes more than a few numbers that are there.
    NotSo,
}

#[inline(always)]
fn quick(
    part: &Part,
    bucket: &Bucket,
    (key, time): (Fingerprint, Time),
    read: Now,
    (cost, is_peek): (u64, bool),
    own: u64,
) -> Quick {
    let Some(version) = part.version() else { return Quick::NotSo };
    let Place::At(slot) = part.find(fingerprint(bucket.with_key(key), time)) else { return Quick::NotSo };
    let stored = part.stored(slot);
    let Some(mut state) = stored.small() else { return Quick::NotSo };
    let last = part.control(Control::Last);
    let known = last.get();
    let now = if time.given().is_some() { read } else { super::part::at_least(read, known) };
    if is_peek {
        let (seen, _) = bucket.algorithm().see(Some(&state), now, cost);
        let admitted = bucket.algorithm().admits(&seen, now, cost);
        return if part.is_still(version) { Quick::Decided(admitted, now, seen) } else { Quick::Changed };
    }
    let Some(Decided { admitted, found, seen }) = bucket.algorithm().decide(&mut state, now, cost) else {
        return Quick::NotSo;
    };
    if !admitted && found == Found::Sound {
        return if part.is_still(version) { Quick::Decided(false, now, seen) } else { Quick::Changed };
    }
    let Some([first, second]) = state.words() else { return Quick::NotSo };
    let Some(mut guard) = part.lock_at(version, own) else { return Quick::Changed };
    if time.given().is_none() && now.steady > known {
        last.set(now.steady);
    }
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
