//! `memory:`, the store of one process: exact, lock-striped, without a thread of its own.

mod blocks;
mod bounds;
mod decide;
mod request;
mod slots;
mod stripe;
mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::bucket::{Bucket, Fingerprint};
use super::charge::Charge;
use super::{Contents, Given, Refund};
use crate::algorithm::Seen;
use crate::clock::{self, Now, Time};
use crate::fork::{self, Held, Lockable};
use crate::named::Named;
use crate::{Error, ErrorKind, Result};
use bounds::{Bounds, Settings};
use stripe::Stripe;

/// The most stripes; a power of two. The stripe follows from the key alone, so that a policy takes
/// one lock.
const STRIPES: usize = 64;

/// A stripe's share of a bounded store is not smaller, so that there is a choice of what to evict.
const LEAST_SHARE: usize = 64;

pub(crate) struct MemoryStore {
    stripes: Box<[Stripe]>,
    bounds: Bounds,
    /// How many blocks there are: nearly always none, and then nobody looks for one.
    blocks: AtomicUsize,
}

/// Opens the store behind `memory:[NAME][?PARAMETERS]`; `rest` is what follows the colon. A named
/// store lives as long as the process: a limiter that is made anew for each request finds what it
/// wrote.
pub(super) fn open(rest: &str) -> Result<Arc<MemoryStore>> {
    static NAMED: Named<Arc<MemoryStore>> = Named::new();
    let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
    let settings: Settings = query.parse()?;
    if name.is_empty() || name == "//" {
        return Ok(MemoryStore::new(settings));
    }
    if name.len() > 64 || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        return Err(Error::new(
            ErrorKind::InvalidUri,
            format!("the store \"memory:{name}\": a name has 1 to 64 characters of A-Z a-z 0-9 . _ -"),
        ));
    }
    let store = NAMED
        .with(|named| Arc::clone(named.entry(name.into()).or_insert_with(|| MemoryStore::new(settings))));
    if !query.is_empty() && store.bounds.settings() != settings {
        return Err(Error::new(
            ErrorKind::StoreMismatch,
            format!(
                "the store \"memory:{name}\" is open with {:?}, not {settings:?}",
                store.bounds.settings()
            ),
        ));
    }
    Ok(store)
}

impl MemoryStore {
    /// A store of at most so many keys.
    #[cfg(any(feature = "redis", feature = "shm"))]
    pub fn bounded(max_keys: usize) -> Arc<Self> {
        Self::new(Settings { max_keys, ..Settings::default() })
    }

    /// A store of its own, as `memory:` says.
    pub fn own() -> Arc<Self> {
        Self::new(Settings::default())
    }

    fn new(settings: Settings) -> Arc<Self> {
        let stripes = (settings.max_keys / LEAST_SHARE).clamp(1, STRIPES);
        let stripes = if stripes.is_power_of_two() { stripes } else { stripes.next_power_of_two() / 2 };
        let store = Arc::new(Self {
            stripes: (0..stripes).map(|_| Stripe::default()).collect(),
            bounds: Bounds::new(settings),
            blocks: AtomicUsize::new(0),
        });
        fork::watch(&store);
        store
    }

    /// Keeps, as the shares of one of `instances`, what was seen of the whole elsewhere.
    pub fn put(&self, shares: &[Bucket], key: &[u8], seen: &[Seen], instances: u64, time: Time) {
        let key = Fingerprint::of(key);
        let mut locked = self.stripe(key).lock();
        let now = locked.time(time, clock::resolve(time));
        let table = locked.of(time);
        for (share, seen) in shares.iter().zip(seen) {
            let at = share.with_key(key);
            match (share.algorithm().share_of(seen, instances), table.get_mut(at)) {
                (Some(state), Some(stored)) => *stored = state,
                (Some(state), None) => table.insert(at, state, (time, now), &self.bounds),
                (None, _) => table.remove(at, &self.bounds),
            }
        }
    }

    /// Gives back what a receipt says; the units that each of the charges gave back.
    pub fn refund(&self, refund: &Refund<'_>, time: Time) -> Given {
        let addresses = self.addresses(refund.charges);
        let mut locked = self.lock(&addresses);
        let now = locked.time(time, clock::resolve(time));
        let given = refund.charges.iter().zip(&addresses).map(|(charge, address)| {
            let stored = locked.table(address, time).get_mut(address.bucket);
            let algorithm = charge.bucket.algorithm();
            stored.map_or(0, |state| algorithm.refund(state, now, charge.cost, &refund.receipt, refund.undo))
        });
        given.collect()
    }

    pub fn reset(&self, charges: &[Charge<'_>], time: Time) {
        let addresses = self.addresses(charges);
        let mut locked = self.lock(&addresses);
        for address in &addresses {
            locked.table(address, time).remove(address.bucket, &self.bounds);
        }
        drop(locked);
        charges.iter().for_each(|charge| self.unblock(charge.key, time));
    }

    pub fn block(&self, key: &[u8], for_us: u64, time: Time) {
        let key = Fingerprint::of(key);
        let mut locked = self.stripe(key).lock();
        let now = locked.time(time, clock::resolve(time));
        let over = now.steady.saturating_sub(table::margin(time));
        let more = locked.of(time).blocks.put(key, now.steady + for_us, over);
        self.blocks.fetch_add(more.cast_unsigned(), Ordering::Relaxed);
    }

    pub fn unblock(&self, key: &[u8], time: Time) {
        if self.blocks.load(Ordering::Relaxed) == 0 {
            return;
        }
        let key = Fingerprint::of(key);
        if self.stripe(key).lock().of(time).blocks.lift(key) {
            self.blocks.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub fn contents(&self) -> Contents {
        let (keys, evicted) = self.bounds.counts();
        Contents { keys, evicted }
    }

    fn check_room(&self, table: &mut table::Table, now: Now) -> Result<()> {
        if table.has_room(now, &self.bounds) {
            return Ok(());
        }
        self.bounds.evicted();
        Err(Error::new(
            ErrorKind::StoreFull,
            format!("the memory store is full: {} keys, all of them live", self.bounds.settings().max_keys),
        ))
    }

    #[inline]
    fn stripe(&self, key: Fingerprint) -> &Stripe {
        &self.stripes[self.stripe_index(key)]
    }

    /// By the bits that are least for a place in its table. The number of stripes is a power of two.
    #[inline]
    fn stripe_index(&self, key: Fingerprint) -> usize {
        key.high as usize & (self.stripes.len() - 1)
    }
}

impl Lockable for MemoryStore {
    fn lock_all(&self) -> Vec<Box<dyn Held + '_>> {
        self.stripes.iter().map(|stripe| Box::new(stripe.lock()) as Box<dyn Held>).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::charge::{Group, Mode, Outcome};
    use super::*;
    use crate::policy::Policy;

    fn acquire(store: &MemoryStore, policy: &Policy, key: &[u8], cost: u64, us: u64) -> Outcome {
        let group = policy.group(key, cost);
        store.decide_group(&group, Mode::Acquire, Time::given_us(us).unwrap()).unwrap()
    }

    fn entries(store: &MemoryStore) -> usize {
        store.stripes.iter().map(|stripe| stripe.lock().len()).sum()
    }

    #[test]
    fn a_policy_charges_all_or_none() {
        let store = MemoryStore::new(Settings::default());
        let policy = Policy::parse("10/second; fixed_window: 3/hour").unwrap();
        assert!(acquire(&store, &policy, b"k", 3, 0).admitted);
        let refused = acquire(&store, &policy, b"k", 1, 0);
        assert!(!refused.admitted);
        let left = policy.limits()[0].algorithm().measure(&refused.seen[0], refused.now);
        assert_eq!(left.remaining, 7);
    }

    #[test]
    fn what_says_nothing_is_swept_before_a_table_grows() {
        let store = MemoryStore::new(Settings::default());
        let policy = Policy::parse("10/second").unwrap();
        for round in 0..50_u64 {
            for key in 0..1_000_u64 {
                let key = (round * 1_000 + key).to_be_bytes();
                assert!(acquire(&store, &policy, &key, 1, round * 86_400_000_000 * 2).admitted);
            }
        }
        assert!(entries(&store) < 6_000, "{}", entries(&store));
    }

    #[test]
    fn nothing_live_is_swept() {
        let store = MemoryStore::new(Settings::default());
        let policy = Policy::parse("1/hour").unwrap();
        for key in 0..20_000_u64 {
            assert!(acquire(&store, &policy, &key.to_be_bytes(), 1, key).admitted);
        }
        for key in 0..20_000_u64 {
            assert!(!acquire(&store, &policy, &key.to_be_bytes(), 1, 20_000).admitted);
        }
    }

    #[test]
    fn refusals_and_free_questions_leave_no_entry() {
        let store = MemoryStore::new(Settings::default());
        let policy = Policy::parse("5/second; deny").unwrap();
        for key in 0..100_u64 {
            acquire(&store, &policy, &key.to_be_bytes(), 1, 0);
            acquire(&store, &policy, &key.to_be_bytes(), 0, 0);
        }
        assert_eq!(entries(&store), 0);
    }

    #[test]
    fn a_group_over_many_keys_is_all_or_nothing_and_never_waits_for_another() {
        let store = MemoryStore::new(Settings::default());
        let policy = Policy::parse("1000/hour").unwrap();
        let keys: Vec<[u8; 1]> = (0..16).map(|key| [key]).collect();
        let group = |rotated: usize| {
            let keys = keys[rotated..].iter().chain(&keys[..rotated]);
            let bucket = policy.group(b"any", 1).charges[0].bucket;
            Group { charges: keys.map(|key| Charge { bucket, key, cost: 1 }).collect() }
        };
        let passed: usize = std::thread::scope(|scope| {
            let one = |turn: usize| {
                store.decide_group(&group(turn % 16), Mode::Acquire, Time::STORE).unwrap().admitted
            };
            let workers: Vec<_> = (0..8)
                .map(|worker| scope.spawn(move || (0..300).filter(|turn| one(turn * 5 + worker)).count()))
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(passed, 1000);
        let refused = store.decide_group(&group(3), Mode::Peek, Time::STORE).unwrap();
        for seen in &refused.seen {
            assert_eq!(policy.limits()[0].algorithm().measure(seen, refused.now).remaining, 0);
        }
    }

    #[test]
    fn a_named_store_is_shared() {
        let first = Arc::as_ptr(&open("unit-test-shared").unwrap());
        assert_eq!(first, Arc::as_ptr(&open("unit-test-shared").unwrap()));
        assert!(!Arc::ptr_eq(&open("").unwrap(), &open("").unwrap()));
    }
}
