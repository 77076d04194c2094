//! `shm:`, one store for all processes of a host: a mapped file of fixed size, without a server.
//!
//! Its states lie in parts, each under a lock that a dead process cannot keep; see [`part`].

mod accounts;
mod arena;
mod boot;
mod chain;
mod decide;
mod file;
#[cfg(test)]
mod interleaved;
mod kept;
mod layout;
mod lists;
mod mapped;
mod owner;
mod part;
mod quick;
mod recovery;
mod request;
mod room;
mod settings;
mod slot;
mod trouble;
#[cfg(test)]
mod turns;
mod waiting;
mod watch;
mod word;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::charge::Charge;
use super::memory::MemoryStore;
use super::{Contents, Given, Refund, StandIn};
use crate::clock::Time;
use crate::fork::{self, Held, Lockable, lock};
use crate::health::{Health, News};
use crate::limit::Limit;
use crate::named::Named;
use crate::{Error, ErrorKind, Result};
use decide::{Address, Addresses, block_of};
use kept::Kept;
use layout::Geometry;
pub(crate) use layout::LAYOUT;
use mapped::Mapped;
use part::Control;
use quick::Asked;
use request::tried;
use room::{Moment, Need};
use settings::Settings;
use slot::{Kind, Place, Stored, space};
use trouble::Trouble;

/// How much a block owes: more than any state.
const BLOCK_DEBT: u128 = u128::MAX;

pub(crate) struct ShmStore {
    settings: Settings,
    /// Never taken away: whoever found it may still use it when the file has been removed.
    mapped: AtomicPtr<Mapped>,
    stand_in: Arc<MemoryStore>,
    news: Mutex<VecDeque<News>>,
    /// Why the file is not to be relied on: it was removed, and there is no new one, or overwritten.
    lost: Mutex<Option<(ErrorKind, String)>>,
    /// Files that were removed, until nobody of this process can still be using them.
    retired: Mutex<Vec<(&'static Mapped, Instant)>>,
    trouble: Trouble,
    /// How many live states had been forgotten when this process first looked, and whether more were since.
    evicted: AtomicU64,
    is_full: AtomicBool,
}

/// Opens the store behind `shm:NAME` or `shm:///PATH`; `rest` is what follows the colon. In a process it
/// stays open.
pub(super) fn open(rest: &str) -> Result<Arc<ShmStore>> {
    static NAMED: Named<Arc<ShmStore>> = Named::new();
    let settings = Settings::parse(rest)?;
    let name = settings.path.to_string_lossy().into_owned();
    NAMED.with(|named| {
        if let Some(store) = named.get(name.as_str()) {
            store.compare(&settings);
            store.compare_own(&settings);
            return Ok(Arc::clone(store));
        }
        let mapped = file::open(&settings)?;
        let store = Arc::new(ShmStore::over(settings.clone(), mapped));
        store.compare(&settings);
        fork::watch(&store);
        named.insert(name.into(), Arc::clone(&store));
        Ok(store)
    })
}

/// What a child must find whole; the parts of the file are nobody's alone, and have locks of their own.
impl Lockable for ShmStore {
    fn lock_all(&self) -> Vec<Box<dyn Held + '_>> {
        vec![
            Box::new(lock(&self.news)),
            Box::new(lock(&self.lost)),
            Box::new(lock(&self.retired)),
            Box::new(lock(self.trouble.last())),
        ]
    }
}

impl ShmStore {
    fn over(settings: Settings, mapped: Mapped) -> Self {
        Self {
            stand_in: MemoryStore::bounded(settings.max_keys),
            settings,
            mapped: AtomicPtr::new(Box::leak(Box::new(mapped))),
            news: Mutex::default(),
            lost: Mutex::default(),
            retired: Mutex::default(),
            trouble: Trouble::default(),
            evicted: AtomicU64::new(u64::MAX),
            is_full: AtomicBool::new(false),
        }
    }

    #[inline]
    fn mapped(&self) -> &'static Mapped {
        // SAFETY: it was leaked, and is never freed.
        unsafe { &*self.mapped.load(Ordering::Acquire) }
    }

    pub fn shown(&self) -> &str {
        &self.settings.shown
    }

    pub fn identity(&self) -> String {
        format!("shm {}", self.settings.path.display())
    }

    pub fn health(&self) -> Health {
        let mut health = Health { layout: LAYOUT as u32, ..Health::local(self.shown()) };
        self.trouble.tell(&mut health);
        if let Some(lost) = lock(&self.lost).clone() {
            health.ok = false;
            health.last_error = Some(lost);
        }
        health
    }

    pub fn contents(&self) -> Contents {
        let (keys, evicted) = self.mapped().counts();
        Contents { keys, evicted }
    }

    fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    fn refuses_when_full(&self) -> bool {
        self.settings.refuses_when_full
    }

    /// What decides while this store does not.
    pub fn stand_in(&self, time: Time) -> StandIn<'_> {
        StandIn { memory: &self.stand_in, time }
    }

    /// How long until who holds a part may have gone on, in microseconds.
    pub fn known_after_us(&self) -> u64 {
        250_000
    }

    /// Whether the lists of these limits have room, on one key.
    ///
    /// # Errors
    /// `unsupported` where they have not.
    pub fn check(&self, limits: &[Limit]) -> Result<()> {
        let Geometry { slots, log_entries, .. } = self.mapped().geometry;
        if limits.len() > slots {
            return Err(Error::unsupported(format!(
                "{} limits for one key, on {}: it was made with max_keys={}, and a part of it has room for {slots}",
                limits.len(),
                self.shown(),
                self.mapped().header.max_keys
            )));
        }
        let room = log_entries as u64;
        let mut all = 0;
        for limit in limits {
            let Some(units) = lists::units_of(limit.algorithm()) else { continue };
            all += units.max(1).next_power_of_two();
            if units > room {
                return Err(Error::unsupported(format!(
                    "\"{limit}\" on {}: its list may need {units} entries, and the store was made with \
                     log_entries={room} (a lease of concurrency takes two): write ?log_entries={}, and remove the old \
                     file",
                    self.shown(),
                    units.next_power_of_two()
                )));
            }
        }
        if all > 2 * room {
            return Err(Error::unsupported(format!(
                "a policy whose lists may need {all} entries for one key, on {}: the store was made with \
                 log_entries={room}, and half of the entries must do; write ?log_entries={}, and remove the old file",
                self.shown(),
                all.div_ceil(2).next_power_of_two()
            )));
        }
        Ok(())
    }

    /// Gives back what a receipt says; the units that each of the charges gave back.
    pub fn refund(&self, refund: &Refund<'_>, time: Time) -> Result<Given> {
        let mapped = self.here();
        if let [charge] = refund.charges {
            let asked = Asked { mapped, key: mapped.key(charge.key), time, cost: 0, is_peek: false };
            let what = (charge.cost, &refund.receipt, refund.undo);
            if let Some((_, now, given)) = tried(|| quick::give_back(charge.bucket, asked, what)) {
                self.went_well(mapped, mapped.part_index(asked.key), time, now);
                return Ok(Given::from_slice(&[given]));
            }
        }
        let addresses = mapped.addresses(refund.charges, time);
        let mut locked = self.lock_or_look(mapped, &addresses)?;
        let slots = addresses.iter().map(|address| match locked.at(address).part.find(address.bucket) {
            Place::At(slot) => Some(slot),
            Place::Nowhere | Place::Broken => None,
        });
        let slots: SmallVec<[Option<usize>; 4]> = slots.collect();
        let own: SmallVec<[usize; 4]> = slots.iter().copied().flatten().collect();
        let moment = Moment { time, now: mapped.now(time), mapped };
        let who = locked.who;
        let need = Need { moment, debt: u128::MAX, own: &own, who, refuses: self.refuses_when_full() };
        let mut all: SmallVec<[Option<(usize, kept::Written)>; 4]> = SmallVec::new();
        let mut given = Given::new();
        for ((charge, address), slot) in refund.charges.iter().zip(&addresses).zip(slots) {
            let guard = locked.at_mut(address);
            let Some(slot) = slot else {
                given.push(0);
                all.push(None);
                continue;
            };
            let kept = Kept::of(guard.part, guard.part.stored(slot))?;
            let what = (charge.cost, &refund.receipt, refund.undo);
            let (units, written) = kept.refund(guard, charge.bucket.algorithm(), moment.now, what, need)?;
            given.push(units);
            all.push(written.map(|written| (slot, written)));
        }
        locked.join();
        for (written, address) in all.into_iter().zip(&addresses) {
            let Some((slot, written)) = written else { continue };
            locked.at_mut(address).keep((Some(slot), address.bucket), written, time)?;
        }
        locked.close();
        self.done(mapped, &addresses, time);
        Ok(given)
    }

    pub fn reset(&self, charges: &[Charge<'_>], time: Time) -> Result<()> {
        let mapped = self.here();
        let mut addresses = mapped.addresses(charges, time);
        let blocks = addresses.iter().map(|at| Address { bucket: block_of(at.key, time), ..*at });
        let blocks: Addresses = blocks.collect();
        addresses.extend(blocks);
        let mut locked = self.lock_or_look(mapped, &addresses)?;
        addresses.iter().for_each(|address| locked.at(address).part.mend(address.bucket));
        locked.join();
        for address in &addresses {
            locked.at_mut(address).remove(address.bucket)?;
        }
        locked.close();
        self.done(mapped, &addresses, time);
        Ok(())
    }

    pub fn block(&self, key: &[u8], for_us: u64, time: Time) -> Result<()> {
        let (mapped, address) = self.block_address(key, time);
        let mut locked = self.lock_or_look(mapped, std::slice::from_ref(&address))?;
        let moment = Moment { time, now: mapped.now(time), mapped };
        let words = [Kind::Block.word(moment.now.steady + for_us) | space(time), 0];
        let who = locked.who;
        let guard = locked.at_mut(&address);
        if let Place::At(slot) = guard.part.find(address.bucket) {
            guard.write(slot, Stored { words, total: 0 })?;
        } else {
            // Blocks are never evicted: they leave room for others.
            let blocks = guard.part.control(Control::Blocks).get();
            let need = Need { moment, debt: BLOCK_DEBT, own: &[], who, refuses: false };
            if blocks >= guard.part.slots.len() as u64 / 2 || !guard.make_room(1, need)? {
                return Err(Error::new(
                    ErrorKind::StoreFull,
                    "no more keys can be blocked in this key's part of the shared-memory store (max_keys)",
                ));
            }
            guard.insert(address.bucket, Stored { words, total: 0 })?;
        }
        locked.close();
        self.done(mapped, std::slice::from_ref(&address), time);
        Ok(())
    }

    pub fn unblock(&self, key: &[u8], time: Time) -> Result<()> {
        let (mapped, address) = self.block_address(key, time);
        let mut locked = self.lock_or_look(mapped, std::slice::from_ref(&address))?;
        locked.at_mut(&address).remove(address.bucket)?;
        locked.close();
        self.done(mapped, std::slice::from_ref(&address), time);
        Ok(())
    }

    fn block_address(&self, key: &[u8], time: Time) -> (&'static Mapped, Address) {
        let mapped = self.here();
        let key = mapped.key(key);
        (mapped, Address { part: mapped.part_index(key), key, bucket: block_of(key, time) })
    }
}
