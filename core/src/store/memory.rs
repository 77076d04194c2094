//! `memory:`, the store of one process: exact, lock-striped, without a thread of its own.

mod table;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use smallvec::SmallVec;

use super::bucket::Fingerprint;
use super::charge::{Charge, Group, Mode, Outcome, Outcomes};
use super::fork::{self, Held, Lockable};
use crate::algorithm::{Found, State};
use crate::clock::{self, Time};
use crate::receipt::Lease;
use crate::{Error, ErrorKind, Result};
use table::{Table, Tables};

/// A power of two; the stripe follows from the key alone, so that a policy takes one lock.
const STRIPES: usize = 64;

pub(crate) struct MemoryStore {
    stripes: Box<[Stripe]>,
}

/// A cache line of its own keeps one stripe's lock from slowing its neighbour.
#[derive(Default)]
#[repr(align(128))]
struct Stripe(Mutex<Tables>);

/// Opens the store behind `memory:` or `memory:NAME`; `name` is what follows the colon. A named store
/// lives as long as the process: a limiter that is made anew for each request finds what it wrote.
pub(super) fn open(name: &str) -> Result<Arc<MemoryStore>> {
    static NAMED: LazyLock<Mutex<HashMap<Box<str>, Arc<MemoryStore>>>> = LazyLock::new(Mutex::default);
    if name.is_empty() || name == "//" {
        return Ok(MemoryStore::new());
    }
    if name.len() > 64 || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) {
        return Err(Error::new(
            ErrorKind::InvalidUri,
            format!("the store \"memory:{name}\": a name has 1 to 64 characters of A-Z a-z 0-9 . _ -"),
        ));
    }
    Ok(Arc::clone(fork::lock(&NAMED).entry(name.into()).or_insert_with(MemoryStore::new)))
}

impl MemoryStore {
    pub fn new() -> Arc<Self> {
        let store = Arc::new(Self { stripes: (0..STRIPES).map(|_| Stripe::default()).collect() });
        fork::watch(&store);
        store
    }

    pub fn decide(&self, groups: &[Group<'_>], mode: Mode, time: Time) -> Outcomes {
        groups.iter().map(|group| Ok(self.decide_group(group, mode, time))).collect()
    }

    fn decide_group(&self, group: &Group<'_>, mode: Mode, time: Time) -> Outcome {
        let charges = &group.charges;
        let lease = group.lease(mode);
        let addresses = addresses(charges);
        let mut locked = self.lock(&addresses);
        // Read inside the lock: who comes later never brings an earlier time.
        let now = clock::resolve(time, group.reads_wall());

        let mut admitted = true;
        let mut found: SmallVec<[Found; 2]> = SmallVec::new();
        let mut seen = SmallVec::new();
        for (charge, address) in charges.iter().zip(&addresses) {
            let stored = locked.table(address, time).get(address.fingerprint);
            let (what, how) = charge.bucket.algorithm().see(stored, now, charge.cost);
            admitted &= charge.bucket.algorithm().admits(&what, now, charge.cost);
            found.push(how);
            seen.push(what);
        }

        for (index, (charge, address)) in charges.iter().zip(&addresses).enumerate() {
            let algorithm = charge.bucket.algorithm();
            if !charge.takes(mode) || (!admitted && found[index] == Found::Sound) {
                continue;
            }
            let taken = if admitted { charge.cost } else { 0 };
            if admitted {
                seen[index] = algorithm.charged(seen[index], now, taken);
            }
            let table = locked.table(address, time);
            if let Some(state) = table.get_mut(address.fingerprint) {
                algorithm.write(state, seen[index], now, taken, lease);
            } else if let Some(mut state) = algorithm.fresh(seen[index]) {
                algorithm.write(&mut state, seen[index], now, taken, lease);
                table.insert(address.fingerprint, state, time);
            }
        }
        Outcome { admitted, now, seen, lease }
    }

    /// Ends the leases of that identity; how many of them still counted.
    pub fn release(&self, charges: &[Charge<'_>], lease: Lease, time: Time) -> u64 {
        let addresses = addresses(charges);
        let mut locked = self.lock(&addresses);
        let now = clock::resolve(time, false);
        let ended = addresses.iter().filter(|address| {
            match locked.table(address, time).get_mut(address.fingerprint) {
                Some(State::Leases(leases)) => leases.release(lease, now.steady),
                _ => false,
            }
        });
        ended.count() as u64
    }

    pub fn reset(&self, charges: &[Charge<'_>], time: Time) {
        let addresses = addresses(charges);
        let mut locked = self.lock(&addresses);
        for address in &addresses {
            locked.table(address, time).remove(address.fingerprint);
        }
    }

    /// Locks the stripes of all addresses in their order, so that no two callers wait for each other.
    fn lock(&self, addresses: &[Address]) -> Locked<'_> {
        let mut stripes: SmallVec<[usize; 2]> = addresses.iter().map(|address| address.stripe).collect();
        stripes.sort_unstable();
        stripes.dedup();
        Locked(stripes.iter().map(|&stripe| (stripe, fork::lock(&self.stripes[stripe].0))).collect())
    }
}

impl Lockable for MemoryStore {
    fn lock_all(&self) -> Vec<Box<dyn Held + '_>> {
        self.stripes.iter().map(|stripe| Box::new(fork::lock(&stripe.0)) as Box<dyn Held>).collect()
    }
}

/// Where the state of one charge lives.
struct Address {
    stripe: usize,
    fingerprint: Fingerprint,
}

/// A key that several charges share, one after the other, is hashed once.
fn addresses(charges: &[Charge<'_>]) -> SmallVec<[Address; 2]> {
    let mut last: Option<(&[u8], Fingerprint)> = None;
    let mut addresses = SmallVec::new();
    for charge in charges {
        let key = match last {
            Some((key, fingerprint)) if std::ptr::eq(key, charge.key) => fingerprint,
            _ => Fingerprint::of(charge.key),
        };
        last = Some((charge.key, key));
        addresses
            .push(Address { stripe: key.high as usize % STRIPES, fingerprint: charge.bucket.with_key(key) });
    }
    addresses
}

/// The locked stripes of one group; nearly always one.
struct Locked<'a>(SmallVec<[(usize, MutexGuard<'a, Tables>); 1]>);

impl Locked<'_> {
    fn table(&mut self, address: &Address, time: Time) -> &mut Table {
        let place = self.0.iter().position(|&(stripe, _)| stripe == address.stripe).unwrap_or(0);
        self.0[place].1.of(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    fn acquire(store: &MemoryStore, policy: &Policy, key: &[u8], cost: u64, us: u64) -> Outcome {
        let group = policy.group(key, cost);
        store.decide_group(&group, Mode::Acquire, Time::given_us(us).unwrap())
    }

    fn entries(store: &MemoryStore) -> usize {
        store.stripes.iter().map(|stripe| fork::lock(&stripe.0).len()).sum()
    }

    #[test]
    fn a_policy_charges_all_or_none() {
        let store = MemoryStore::new();
        let policy = Policy::parse("10/second; fixed_window: 3/hour").unwrap();
        assert!(acquire(&store, &policy, b"k", 3, 0).admitted);
        let refused = acquire(&store, &policy, b"k", 1, 0);
        assert!(!refused.admitted);
        let left = policy.limits()[0].algorithm().measure(&refused.seen[0], refused.now);
        assert_eq!(left.remaining, 7);
    }

    #[test]
    fn what_says_nothing_is_swept_before_a_table_grows() {
        let store = MemoryStore::new();
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
        let store = MemoryStore::new();
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
        let store = MemoryStore::new();
        let policy = Policy::parse("5/second; deny").unwrap();
        for key in 0..100_u64 {
            acquire(&store, &policy, &key.to_be_bytes(), 1, 0);
            acquire(&store, &policy, &key.to_be_bytes(), 0, 0);
        }
        assert_eq!(entries(&store), 0);
    }

    #[test]
    fn a_group_over_many_keys_is_all_or_nothing_and_never_waits_for_another() {
        let store = MemoryStore::new();
        let policy = Policy::parse("1000/hour").unwrap();
        let keys: Vec<[u8; 1]> = (0..16).map(|key| [key]).collect();
        let group = |rotated: usize| {
            let keys = keys[rotated..].iter().chain(&keys[..rotated]);
            let bucket = policy.group(b"any", 1).charges[0].bucket;
            Group { charges: keys.map(|key| Charge { bucket, key, cost: 1 }).collect() }
        };
        let passed: usize = std::thread::scope(|scope| {
            let one =
                |turn: usize| store.decide_group(&group(turn % 16), Mode::Acquire, Time::STORE).admitted;
            let workers: Vec<_> = (0..8)
                .map(|worker| scope.spawn(move || (0..300).filter(|turn| one(turn * 5 + worker)).count()))
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(passed, 1000);
        let refused = store.decide_group(&group(3), Mode::Peek, Time::STORE);
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
