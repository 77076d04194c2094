//! Deciding any charges, on any keys: under as many locks as they need.

use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::MemoryStore;
use super::bounds::WhenFull;
use super::slots::Place;
use super::stripe::Guard;
use super::table::Table;
use crate::Result;
use crate::algorithm::{Found, Seen};
use crate::clock::{self, Now, Time};
use crate::receipt::Lease;
use crate::store::bucket::Fingerprint;
use crate::store::charge::{self, Charge, Group, Mode, Outcome, Outcomes};

/// A charge of a group, and what its state said.
struct Work<'a> {
    charge: &'a Charge<'a>,
    bucket: Fingerprint,
    seen: Seen,
    found: Found,
    admits: bool,
}

/// Where the state of one charge lives.
pub(super) struct Address {
    pub stripe: usize,
    pub key: Fingerprint,
    pub bucket: Fingerprint,
}

/// The locked stripes of one group; nearly always one.
pub(super) struct Locked<'a>(pub SmallVec<[(usize, Guard<'a>); 1]>);

impl MemoryStore {
    pub fn decide(&self, groups: &[Group<'_>], mode: Mode, time: Time) -> Outcomes {
        groups.iter().map(|group| self.decide_group(group, mode, time)).collect()
    }

    pub fn decide_group(&self, group: &Group<'_>, mode: Mode, time: Time) -> Result<Outcome> {
        let read = clock::resolve(time);
        let addresses = self.addresses(&group.charges);
        let mut locked = self.lock(&addresses);
        let now = locked.time(time, read);
        self.decide_locked(&mut locked, &group.charges, &addresses, mode, (time, now))
    }

    /// Decides charges whose stripes are locked.
    pub(super) fn decide_locked(
        &self,
        locked: &mut Locked<'_>,
        charges: &[Charge<'_>],
        addresses: &[Address],
        mode: Mode,
        (time, now): (Time, Now),
    ) -> Result<Outcome> {
        let lease = charge::lease(charges, mode);
        if mode != Mode::Charge && self.has_blocks() {
            let ends =
                addresses.iter().filter_map(|at| locked.table(at, time).blocks.end(at.key, now.steady));
            if let Some(end) = ends.max() {
                return Ok(Outcome::blocked(now, end, lease));
            }
        }

        let mut works: SmallVec<[Work<'_>; 4]> = SmallVec::new();
        for (charge, address) in charges.iter().zip(addresses) {
            let table = locked.table(address, time);
            let place = table.slots.find(address.bucket);
            works.push(look(table, place, charge, address.bucket, now));
            if self.needs_room(place, charge, mode) {
                self.check_room(table, now)?;
            }
        }
        let admitted = works.iter().all(|work| work.admits);
        for (work, address) in works.iter_mut().zip(addresses) {
            self.settle(locked.table(address, time), work, mode, admitted, (time, now), lease);
        }
        let seen = works.into_iter().map(|work| work.seen).collect();
        Ok(Outcome { admitted, now, seen, lease })
    }

    #[inline]
    pub(super) fn has_blocks(&self) -> bool {
        self.blocks.load(Ordering::Relaxed) > 0
    }

    fn needs_room(&self, place: Place, charge: &Charge<'_>, mode: Mode) -> bool {
        self.bounds.settings().when_full == WhenFull::Refuse
            && charge.takes(mode)
            && matches!(place, Place::Before(_))
    }

    /// Writes what the group's verdict makes of a charge, and what was found to mend.
    #[inline]
    fn settle(
        &self,
        table: &mut Table,
        work: &mut Work<'_>,
        mode: Mode,
        admitted: bool,
        (time, now): (Time, Now),
        lease: Lease,
    ) {
        let (charge, algorithm) = (work.charge, work.charge.bucket.algorithm());
        let taken = match mode {
            Mode::Charge => algorithm.room(&work.seen, now, charge.cost),
            Mode::Acquire if admitted => charge.cost,
            Mode::Acquire | Mode::Peek => 0,
        };
        if !charge.takes(mode) || (taken == 0 && work.found == Found::Sound) {
            return;
        }
        if taken > 0 {
            work.seen = algorithm.charged(work.seen, now, taken);
        }
        // What was inserted or evicted meanwhile may have moved it.
        if let Place::At(slot) = table.slots.find(work.bucket)
            && let Some(state) = table.slots.get_mut(slot)
        {
            algorithm.write(state, work.seen, now, taken, lease);
        } else if let Some(mut state) = algorithm.fresh(work.seen) {
            algorithm.write(&mut state, work.seen, now, taken, lease);
            table.insert(work.bucket, state, (time, now), &self.bounds);
        }
    }

    /// Where the charges' states live. A key that several charges share, one after the other, is
    /// hashed once.
    pub(super) fn addresses(&self, charges: &[Charge<'_>]) -> SmallVec<[Address; 4]> {
        let mut last: Option<(&[u8], Fingerprint)> = None;
        let mut addresses = SmallVec::new();
        for charge in charges {
            let key = match last {
                Some((key, fingerprint)) if std::ptr::eq(key, charge.key) => fingerprint,
                _ => Fingerprint::of(charge.key),
            };
            last = Some((charge.key, key));
            addresses.push(Address {
                stripe: self.stripe_index(key),
                key,
                bucket: charge.bucket.with_key(key),
            });
        }
        addresses
    }

    /// Locks the stripes of all addresses in their order, so that no two callers wait for each other.
    pub(super) fn lock(&self, addresses: &[Address]) -> Locked<'_> {
        let mut stripes: SmallVec<[usize; 4]> = addresses.iter().map(|address| address.stripe).collect();
        stripes.sort_unstable();
        stripes.dedup();
        Locked(stripes.iter().map(|&stripe| (stripe, self.stripes[stripe].lock())).collect())
    }
}

impl Locked<'_> {
    pub fn table(&mut self, address: &Address, time: Time) -> &mut Table {
        let place = self.0.iter().position(|&(stripe, _)| stripe == address.stripe).unwrap_or(0);
        self.0[place].1.of(time)
    }

    /// The time to decide at, as of the latest of the stripes.
    pub fn time(&self, time: Time, read: Now) -> Now {
        let latest = self.0.iter().fold(read, |latest, (_, guard)| guard.time(time, latest));
        self.0.iter().fold(latest, |latest, (_, guard)| guard.time(time, latest))
    }
}

/// What a charge's state says.
#[inline]
fn look<'a>(table: &Table, place: Place, charge: &'a Charge<'a>, bucket: Fingerprint, now: Now) -> Work<'a> {
    let algorithm = charge.bucket.algorithm();
    let stored = if let Place::At(slot) = place { table.slots.get(slot) } else { None };
    let (seen, found) = algorithm.see(stored, now, charge.cost);
    let admits = algorithm.admits(&seen, now, charge.cost);
    Work { charge, bucket, seen, found, admits }
}
