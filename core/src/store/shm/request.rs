//! Deciding a request: every limit of a policy, for one key, in one part.

use smallvec::SmallVec;

use super::ShmStore;
use super::decide::{Address, debt};
use super::kept::{Change, Looked};
use super::mapped::Mapped;
use super::part::Control;
use super::quick::{self, Asked, Quick};
use super::room::Need;
use super::slot::fingerprint;
use crate::Result;
use crate::algorithm::{Found, Seen};
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
        let mapped = self.here();
        let key = mapped.key(request.key);
        let part = mapped.part_index(key);
        if let (Mode::Acquire, 1..) | (Mode::Peek, _) = (mode, request.cost) {
            let asked = Asked { mapped, key, time, cost: request.cost, is_peek: mode == Mode::Peek };
            if let [bucket] = request.buckets {
                if let Some((admitted, now, seen)) = tried(|| quick::decide_one(bucket, asked)) {
                    self.went_well(mapped, part, time, now);
                    return Ok(answer(Verdict::new(admitted, now, &[seen])));
                }
                let decided = self.decide_one(bucket, asked);
                let decided = decided.inspect_err(|error| self.failed(mapped, part, error))?;
                if let Some((admitted, now, seen, lease)) = decided {
                    self.went_well(mapped, part, time, now);
                    return Ok(answer(Verdict { admitted, now, seen: &[seen], lease }));
                }
            } else if let Some((admitted, now, seen)) = tried(|| quick::decide_all(request.buckets, asked)) {
                self.went_well(mapped, part, time, now);
                return Ok(answer(Verdict::new(admitted, now, &seen)));
            }
        }
        let outcome = self.decide_charges(mapped, request, key, mode, time);
        let outcome = outcome.inspect_err(|error| self.failed(mapped, part, error))?;
        self.went_well(mapped, part, time, outcome.now);
        Ok(answer(outcome.verdict()))
    }

    /// Decides about one limit: a list, a new key, or what others are busy with. None where a key of the part
    /// is blocked.
    fn decide_one(&self, bucket: &Bucket, asked: Asked<'_>) -> Result<Option<(bool, Now, Seen, Lease)>> {
        let Asked { mapped, key, time, cost, is_peek } = asked;
        let part = &mapped.parts[mapped.part_index(key)];
        let (at, algorithm) = (fingerprint(bucket.with_key(key), time), bucket.algorithm());
        let who = mapped.holder(self.timeout())?;
        let home = part.home(at);
        let mut guard = loop {
            let mut guard = part.lock(who)?;
            if part.control(Control::Blocks).get() != 0 {
                return Ok(None);
            }
            if guard.hold(home, who) {
                break guard;
            }
            drop(guard);
            part.wait_for(home, who)?;
        };
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

/// Tries what needs nobody's patience, a few times while others are in the way.
#[inline(always)]
pub(super) fn tried<S>(mut quick: impl FnMut() -> Quick<S>) -> Option<(bool, Now, S)> {
    for turn in 0..TRIES {
        match quick() {
            Quick::Decided(admitted, now, seen) => return Some((admitted, now, seen)),
            Quick::Held => (0..FIRST_SPINS << turn).for_each(|_| std::hint::spin_loop()),
            Quick::NotSo => break,
        }
    }
    None
}
