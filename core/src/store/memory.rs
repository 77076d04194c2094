//! `memory:`, the store of one process: exact, lock-striped, without a thread of its own.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use hashbrown::HashTable;
use smallvec::SmallVec;

use super::bucket::Fingerprint;
use super::fork::{self, Held, Lockable};
use super::{Outcome, Request, States};
use crate::algorithm::{Found, State};
use crate::clock::{self, Now, Time};
use crate::policy::Policy;
use crate::{Error, ErrorKind, Result};

/// A power of two; the stripe follows from the key alone, so that a policy takes one lock.
const STRIPES: usize = 64;

/// Room that a table begins with.
const LEAST_ROOM: usize = 8;

/// How long what says nothing is kept: a second, or a day under a given clock, as on Redis.
const MARGIN_US: u64 = 1_000_000;
const GIVEN_MARGIN_US: u64 = 86_400_000_000;

pub(crate) struct MemoryStore {
    stripes: Box<[Stripe]>,
}

/// A cache line of its own keeps one stripe's lock from slowing its neighbour.
#[derive(Default)]
#[repr(align(128))]
struct Stripe(Mutex<Tables>);

/// Given times have a space of their own, so that no test writes future times under real keys.
#[derive(Default)]
struct Tables {
    system: HashTable<Entry>,
    given: HashTable<Entry>,
}

struct Entry {
    fingerprint: Fingerprint,
    state: State,
}

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

    pub fn decide(&self, request: &Request<'_>) -> Outcome {
        let key = Fingerprint::of(request.key);
        let mut tables = self.stripe(key);
        let now = clock::resolve(request.time, request.policy.reads_wall());
        let table = tables.of(request.time);

        let mut admitted = true;
        let mut future: SmallVec<[bool; 2]> = SmallVec::new();
        let mut places: SmallVec<[Option<usize>; 2]> = SmallVec::new();
        let mut states = States::new();
        for (limit, bucket) in request.policy.limits().iter().zip(request.policy.buckets()) {
            let place = place(table, bucket.with_key(key));
            let mut state =
                place.and_then(|it| table.get_bucket(it)).map_or(State::Fresh, |entry| entry.state);
            future.push(limit.algorithm().read(&mut state, now) == Found::Future);
            admitted &= limit.algorithm().admits(&state, now, request.cost);
            places.push(place);
            states.push(state);
        }

        if request.takes() {
            let policy = request.policy;
            for (index, (limit, bucket)) in policy.limits().iter().zip(policy.buckets()).enumerate() {
                if admitted {
                    limit.algorithm().charge(&mut states[index], now, request.cost);
                } else if !future[index] {
                    continue;
                }
                match places[index].and_then(|it| table.get_bucket_mut(it)) {
                    Some(entry) => entry.state = states[index],
                    None if states[index] == State::Fresh => {}
                    None => {
                        let entry = Entry { fingerprint: bucket.with_key(key), state: states[index] };
                        insert(table, entry, request.time);
                        // Growing moves what the places point at.
                        for (place, bucket) in places.iter_mut().zip(policy.buckets()).skip(index + 1) {
                            *place = self::place(table, bucket.with_key(key));
                        }
                    }
                }
            }
        }
        Outcome { admitted, now, states }
    }

    pub fn reset(&self, policy: &Policy, key: &[u8], time: Time) {
        let key = Fingerprint::of(key);
        let mut tables = self.stripe(key);
        let table = tables.of(time);
        for bucket in policy.buckets() {
            let fingerprint = bucket.with_key(key);
            if let Ok(entry) = table.find_entry(fingerprint.low, |entry| entry.fingerprint == fingerprint) {
                entry.remove();
            }
        }
    }

    fn stripe(&self, key: Fingerprint) -> MutexGuard<'_, Tables> {
        fork::lock(&self.stripes[key.high as usize % STRIPES].0)
    }
}

impl Lockable for MemoryStore {
    fn lock_all(&self) -> Vec<Box<dyn Held + '_>> {
        self.stripes.iter().map(|stripe| Box::new(fork::lock(&stripe.0)) as Box<dyn Held>).collect()
    }
}

impl Tables {
    fn of(&mut self, time: Time) -> &mut HashTable<Entry> {
        match time.given() {
            Some(_) => &mut self.given,
            None => &mut self.system,
        }
    }
}

fn place(table: &HashTable<Entry>, fingerprint: Fingerprint) -> Option<usize> {
    table.find_bucket_index(fingerprint.low, |entry| entry.fingerprint == fingerprint)
}

fn insert(table: &mut HashTable<Entry>, entry: Entry, time: Time) {
    if table.len() == table.capacity() {
        make_room(table, time);
    }
    table.insert_unique(entry.fingerprint.low, entry, |entry| entry.fingerprint.low);
}

/// Before a table grows it drops what says nothing any more: the work is paid by the inserts since
/// the last time, and no thread is needed.
fn make_room(table: &mut HashTable<Entry>, time: Time) {
    // Kept a little longer, so that a clock that steps back finds what it had written.
    let margin = if time.given().is_some() { GIVEN_MARGIN_US } else { MARGIN_US };
    let Now { steady, wall } = clock::resolve(time, true);
    let past = Now { steady: steady.saturating_sub(margin), wall: wall.saturating_sub(margin) };
    table.retain(|entry| !entry.state.is_spent(past));
    if table.len() > table.capacity() / 2 || table.capacity() == 0 {
        table.reserve((table.capacity() + 1).max(LEAST_ROOM), |entry| entry.fingerprint.low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Mode;

    fn acquire(store: &MemoryStore, policy: &Policy, key: &[u8], cost: u64, us: u64) -> Outcome {
        let time = Time::given_us(us).unwrap();
        store.decide(&Request { policy, key, cost, mode: Mode::Acquire, time })
    }

    fn entries(store: &MemoryStore) -> usize {
        store.stripes.iter().map(|stripe| fork::lock(&stripe.0).given.len()).sum()
    }

    #[test]
    fn a_policy_charges_all_or_none() {
        let store = MemoryStore::new();
        let policy = Policy::parse("10/second; fixed_window: 3/hour").unwrap();
        assert!(acquire(&store, &policy, b"k", 3, 0).admitted);
        let refused = acquire(&store, &policy, b"k", 1, 0);
        assert!(!refused.admitted);
        let left = policy.limits()[0].algorithm().measure(&refused.states[0], refused.now);
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
    fn a_named_store_is_shared() {
        let first = Arc::as_ptr(&open("unit-test-shared").unwrap());
        assert_eq!(first, Arc::as_ptr(&open("unit-test-shared").unwrap()));
        assert!(!Arc::ptr_eq(&open("").unwrap(), &open("").unwrap()));
    }
}
