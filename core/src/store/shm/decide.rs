//! Deciding any charges, on any keys: under as many locks as they need.
//!
//! First all of them are looked at; then room is made for what will be written, which forgets others one
//! by one; then it is written, as one step that a kill undoes; then the step is closed.

use smallvec::SmallVec;

use super::ShmStore;
use super::kept::{Change, Looked, Written};
use super::mapped::Mapped;
use super::part::{Control, Guard, Holder, Unheld};
use super::room::{Moment, Need};
use super::slot::{Kind, Place, fingerprint};
use crate::algorithm::{Algorithm, Found, Seen};
use crate::clock::{Now, Time};
use crate::store::bucket::Fingerprint;
use crate::store::charge::{self, Charge, Group, Mode, Outcome, Outcomes};
use crate::{Error, Result};

/// The most charges of a group: what they change must fit a journal.
const MOST_CHARGES: usize = 32;

/// Where the state of one charge lives.
pub(super) struct Address {
    pub part: usize,
    pub key: Fingerprint,
    pub bucket: u64,
}

pub(super) type Addresses = SmallVec<[Address; 4]>;

/// The parts of one group while they are held, in their order; nearly always one.
pub(super) struct Locked<'a> {
    guards: SmallVec<[Guard<'a>; 1]>,
    pub who: Holder<'a>,
}

/// A charge of a group, and what its state said.
struct Work<'a> {
    charge: &'a Charge<'a>,
    looked: Looked,
}

impl ShmStore {
    pub fn decide(&self, groups: &[Group<'_>], mode: Mode, time: Time) -> Result<Outcomes> {
        Ok(groups.iter().map(|group| self.decide_group(group, mode, time)).collect())
    }

    fn decide_group(&self, group: &Group<'_>, mode: Mode, time: Time) -> Result<Outcome> {
        let mapped = self.here();
        let addresses = mapped.addresses(&group.charges, time);
        let mut locked = self.lock_or_look(mapped, &addresses)?;
        let decided = self.decide_locked(&mut locked, &group.charges, &addresses, mode, (mapped, time));
        drop(locked);
        match &decided {
            Ok(_) => self.done(mapped, &addresses, time),
            Err(error) => self.failed(mapped, addresses.first().map_or(0, |address| address.part), error),
        }
        decided
    }

    /// Decides charges whose parts are held.
    pub(super) fn decide_locked(
        &self,
        locked: &mut Locked<'_>,
        charges: &[Charge<'_>],
        addresses: &[Address],
        mode: Mode,
        (mapped, time): (&Mapped, Time),
    ) -> Result<Outcome> {
        if charges.len() > MOST_CHARGES {
            let count = charges.len();
            return Err(Error::unsupported(format!("{count} charges in one step: at most {MOST_CHARGES}")));
        }
        let lease = charge::lease(charges, mode);
        let (moment, works) = mapped.look(time, |now| {
            let works = charges.iter().zip(addresses).map(|(charge, address)| {
                let (part, algorithm) = (locked.at(address).part, charge.bucket.algorithm());
                let looked = Looked::new(part, address.bucket, algorithm, now, charge.cost)?;
                Ok(Work { charge, looked })
            });
            let works = works.collect::<Result<SmallVec<[Work<'_>; 4]>>>()?;
            let is_future = works.iter().any(|work| work.looked.found == Found::Future);
            Ok((works, is_future))
        })?;
        let (now, mut works) = (moment.now, works);
        if mode != Mode::Charge
            && let Some(end) = addresses.iter().filter_map(|at| locked.block_end(at, moment)).max()
        {
            return Ok(Outcome::blocked(now, end, lease));
        }
        let admitted = works.iter().all(|work| work.looked.admits);
        let own: SmallVec<[usize; 4]> = works.iter().filter_map(|work| work.looked.slot).collect();

        let mut all: SmallVec<[Option<Written>; 4]> = SmallVec::new();
        for (work, address) in works.iter_mut().zip(addresses) {
            let Work { charge, looked: work } = work;
            let algorithm = charge.bucket.algorithm();
            let taken = match mode {
                Mode::Charge => algorithm.room(&work.seen, now, charge.cost),
                Mode::Acquire if admitted => charge.cost,
                Mode::Acquire | Mode::Peek => 0,
            };
            if !charge.takes(mode) || (taken == 0 && work.found == Found::Sound) {
                all.push(None);
                continue;
            }
            if taken > 0 {
                work.seen = algorithm.charged(work.seen, now, taken);
            }
            let who = locked.who;
            let guard = locked.at_mut(address);
            let debt = debt(algorithm, &work.seen, now);
            let need = Need { moment, debt, own: &own, who, refuses: self.refuses_when_full() };
            let change = Change { seen: work.seen, found: work.found, now, taken, lease };
            all.push(change.written(guard, algorithm, work.kept.take(), need)?);
        }
        if all.iter().any(Option::is_some) {
            self.make_room(locked, &works, &mut all, addresses, (moment, &own))?;
            write(locked, &works, all, addresses, moment.time)?;
        }
        let seen = works.into_iter().map(|work| work.looked.seen).collect();
        Ok(Outcome { admitted, now, seen, lease })
    }

    /// Frees a slot for each state that is new. One that owes less than all others is not kept.
    fn make_room(
        &self,
        locked: &mut Locked<'_>,
        works: &[Work<'_>],
        all: &mut [Option<Written>],
        addresses: &[Address],
        (moment, own): (Moment<'_>, &[usize]),
    ) -> Result<()> {
        let mut needed: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for ((work, written), address) in works.iter().zip(all).zip(addresses) {
            let (None, Some(new)) = (work.looked.slot, &written) else { continue };
            let place = needed.iter().position(|&(part, _)| part == address.part).unwrap_or_else(|| {
                needed.push((address.part, 0));
                needed.len() - 1
            });
            let debt = new.stored.debt(moment.now);
            let need = Need { moment, debt, own, who: locked.who, refuses: self.refuses_when_full() };
            let guard = locked.at_mut(address);
            if guard.make_room(needed[place].1 + 1, need)? {
                needed[place].1 += 1;
            } else if let Some(new) = written.take() {
                guard.untake_all(new.stored);
            }
        }
        Ok(())
    }

    /// Holds the parts of all addresses in their order, so that no two callers wait for each other.
    pub(super) fn lock<'a>(&self, mapped: &'a Mapped, addresses: &[Address]) -> Result<Locked<'a>> {
        let who = mapped.holder(self.timeout())?;
        let mut parts: SmallVec<[usize; 4]> = addresses.iter().map(|address| address.part).collect();
        parts.sort_unstable();
        parts.dedup();
        loop {
            let mut guards = SmallVec::new();
            let tried =
                parts.iter().try_for_each(|&part| mapped.parts[part].try_lock(who).map(|it| guards.push(it)));
            match tried {
                Ok(()) => {
                    let mut locked = Locked { guards, who };
                    let Some(busy) = locked.hold(addresses) else { return Ok(locked) };
                    drop(locked);
                    mapped.parts[busy.0].wait_for(busy.1, who)?;
                }
                Err(Unheld::Failed(error)) => return Err(error),
                // What is held here may be waited for by who settles that one.
                Err(Unheld::Settle(lead)) => {
                    drop(guards);
                    if let Some(lead) = mapped.parts.get(lead) {
                        drop(lead.lock(who)?);
                    }
                }
            }
        }
    }
}

impl Mapped {
    /// The time to decide at, and what is then looked at: chains that are held. Clocks of different processors may lie a
    /// little apart, and nobody decides before what was decided already: what lies in the future by that much is soon
    /// of now. What stays there is of a clock that stepped back.
    pub fn look<T>(
        &self,
        time: Time,
        mut look: impl FnMut(Now) -> Result<(T, bool)>,
    ) -> Result<(Moment<'_>, T)> {
        const APART_US: u64 = 100;
        let mut first = None;
        loop {
            let now = self.now(time);
            let (looked, is_future) = look(now)?;
            let first = *first.get_or_insert(now.steady);
            if !is_future || time.given().is_some() || now.steady > first + APART_US {
                return Ok((Moment { time, now, mapped: self }, looked));
            }
            std::hint::spin_loop();
        }
    }

    /// Where the charges' states live. A key that several charges share, one after the other, is
    /// hashed once.
    pub fn addresses(&self, charges: &[Charge<'_>], time: Time) -> Addresses {
        let mut last: Option<(&[u8], Fingerprint)> = None;
        let mut addresses = SmallVec::new();
        for charge in charges {
            let key = match last {
                Some((key, fingerprint)) if std::ptr::eq(key, charge.key) => fingerprint,
                _ => self.key(charge.key),
            };
            last = Some((charge.key, key));
            let bucket = fingerprint(charge.bucket.with_key(key), time);
            addresses.push(Address { part: self.part_index(key), key, bucket });
        }
        addresses
    }
}

impl<'a> Locked<'a> {
    pub fn at(&self, address: &Address) -> &Guard<'a> {
        &self.guards[self.place(address)]
    }

    pub fn at_mut(&mut self, address: &Address) -> &mut Guard<'a> {
        let place = self.place(address);
        &mut self.guards[place]
    }

    /// Holds all chains; where somebody else has one, that part and chain.
    fn hold(&mut self, addresses: &[Address]) -> Option<(usize, usize)> {
        let who = self.who;
        addresses.iter().find_map(|address| {
            let guard = self.at_mut(address);
            let home = guard.part.home(address.bucket);
            (!guard.hold(home, who)).then_some((address.part, home))
        })
    }

    fn place(&self, address: &Address) -> usize {
        self.guards.iter().position(|guard| guard.part.index == address.part).unwrap_or(0)
    }

    /// Until when a key is refused.
    fn block_end(&self, address: &Address, moment: Moment<'_>) -> Option<u64> {
        let part = self.at(address).part;
        if part.control(Control::Blocks).get() == 0 {
            return None;
        }
        let Place::At(slot) = part.find(block_of(address.key, moment.time)) else { return None };
        let stored = part.stored(slot);
        let is_block = Kind::of(stored.words) == Some(Kind::Block);
        (is_block && stored.end() > moment.now.steady).then(|| stored.end())
    }
}

/// The fingerprint of a key's block.
pub(super) fn block_of(key: Fingerprint, time: Time) -> u64 {
    const BLOCK: u64 = 0xd6e8_feb8_6659_fd93;
    fingerprint(key, time) ^ BLOCK
}

/// How much what was seen owes.
pub(super) fn debt(algorithm: &Algorithm, seen: &Seen, now: Now) -> u128 {
    let measure = algorithm.measure(seen, now);
    u128::from(measure.reset_after) * u128::from(measure.used.max(1))
}

/// Writes all of it as one step, over as many parts as it takes.
fn write(
    locked: &mut Locked<'_>,
    works: &[Work<'_>],
    all: SmallVec<[Option<Written>; 4]>,
    addresses: &[Address],
    time: Time,
) -> Result<()> {
    locked.join();
    for ((work, written), address) in works.iter().zip(all).zip(addresses) {
        if let Some(written) = written {
            locked.at_mut(address).keep((work.looked.slot, address.bucket), written, time)?;
        }
    }
    locked.close();
    Ok(())
}

impl Locked<'_> {
    /// Begins a step that is one for all parts.
    pub fn join(&self) {
        if self.guards.len() > 1 {
            self.guards.iter().for_each(|guard| guard.join(&self.guards[0]));
        }
    }

    /// Closes the step: at the first part for all of them.
    pub fn close(&mut self) {
        let is_shared = self.guards.len() > 1;
        if is_shared {
            self.guards[0].close_all();
        }
        for guard in &mut self.guards {
            guard.close();
            if is_shared {
                guard.leave();
            }
        }
    }
}
