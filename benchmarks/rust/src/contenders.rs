//! Who is measured. Each decides for a key of 16 bytes, at a cost of one.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::DefaultClock;
use governor::state::InMemoryState;
use governor::state::direct::NotKeyed;
use governor::state::keyed::{DashMapStateStore, HashMapStateStore};
use governor::{Quota, RateLimiter};
use mirab::{Limiter, Policy, Store};

use crate::Outcome;
use crate::keys::Key;
use crate::processes::File;
use crate::slot::Asked;

pub trait Contender: Send + Sync + 'static {
    fn admits(&self, key: &Key) -> bool;
}

pub struct About {
    pub name: &'static str,
    pub kind: &'static str,
    pub note: &'static str,
}

pub const ALL: &[About] = &[
    About { name: "mirab.allow", kind: "mirab", note: "yes or no; exact to the microsecond" },
    About { name: "mirab.acquire", kind: "mirab", note: "the full decision, one field read" },
    About { name: "shm.allow", kind: "mirab", note: "the same in shared memory" },
    About { name: "shm.acquire", kind: "mirab", note: "the full decision, in shared memory" },
    About { name: "shm.1-process", kind: "mirab", note: "yes or no for 1 000 keys in shared memory" },
    About {
        name: "shm.2-processes",
        kind: "mirab",
        note: "two processes at once, each for 1 000 keys of its own",
    },
    About {
        name: "governor-hashmap",
        kind: "peer",
        note: "one mutex around all keys; yes or no, the wait when refused",
    },
    About {
        name: "governor-dashmap",
        kind: "peer",
        note: "a lock per shard; yes or no, the wait when refused",
    },
    About { name: "governor-direct", kind: "floor", note: "no keys: one limiter, one atomic word" },
    About {
        name: "atomic+clock",
        kind: "floor",
        note: "one atomic word and one reading of governor's clock",
    },
];

/// So many in so many seconds, at once or one by one: a token bucket.
#[derive(Clone, Copy)]
pub struct Limit {
    pub amount: u32,
    pub seconds: u64,
}

/// Keeps every key: mirab's default is a million, and then it forgets one for each that comes.
const ROOMY: &str = "memory:?max_keys=4000000";

/// A contender under those limits; only mirab takes more than one.
pub fn make(name: &str, limits: &[Limit]) -> Outcome<Box<dyn Asked>> {
    let [limit, ..] = limits else { return Err("no limit".into()) };
    let mirab = |uri: &str| mirab(limits, uri);
    let amount = NonZeroU32::new(limit.amount).ok_or("governor has no limit of 0")?;
    let quota = Quota::with_period(Duration::from_secs(limit.seconds) / limit.amount);
    let quota = quota.ok_or("governor has no limit without a period")?.allow_burst(amount);
    Ok(match name {
        "mirab.allow" => Box::new(Allow(mirab(ROOMY)?)),
        "mirab.acquire" => Box::new(Acquire(mirab(ROOMY)?)),
        "shm.allow" => {
            let file = File::new();
            Box::new(Kept(Allow(mirab(&file.uri())?), file))
        }
        "shm.acquire" => {
            let file = File::new();
            Box::new(Kept(Acquire(mirab(&file.uri())?), file))
        }
        "governor-hashmap" => Box::new(RateLimiter::hashmap(quota)),
        "governor-dashmap" => Box::new(RateLimiter::dashmap(quota)),
        "governor-direct" => Box::new(RateLimiter::direct(quota)),
        "atomic+clock" => Box::new(Floor { admits: limit.amount > 1, ..Floor::default() }),
        _ => return Err(format!("unknown contender {name:?}").into()),
    })
}

/// A limiter of ours.
pub fn mirab(limits: &[Limit], uri: &str) -> Outcome<Limiter> {
    let texts: Vec<_> = limits.iter().map(|it| format!("{} per {} seconds", it.amount, it.seconds)).collect();
    Ok(Limiter::builder(Policy::parse(&texts.join("; "))?).store(Store::open(uri)?).build()?)
}

/// A contender, and the file that it needs.
struct Kept<C>(C, #[expect(dead_code, reason = "it is removed with this")] File);

impl<C: Contender> Contender for Kept<C> {
    fn admits(&self, key: &Key) -> bool {
        self.0.admits(key)
    }
}

struct Allow(Limiter);

impl Contender for Allow {
    fn admits(&self, key: &Key) -> bool {
        self.0.allow(key, 1).expect("a decision")
    }
}

struct Acquire(Limiter);

impl Contender for Acquire {
    fn admits(&self, key: &Key) -> bool {
        let decision = self.0.acquire(key, 1).expect("a decision");
        black_box(decision.remaining());
        decision.allowed()
    }
}

impl Contender for RateLimiter<Key, HashMapStateStore<Key>, DefaultClock> {
    fn admits(&self, key: &Key) -> bool {
        self.check_key(key).is_ok()
    }
}

impl Contender for RateLimiter<Key, DashMapStateStore<Key>, DefaultClock> {
    fn admits(&self, key: &Key) -> bool {
        self.check_key(key).is_ok()
    }
}

impl Contender for RateLimiter<NotKeyed, InMemoryState, DefaultClock> {
    fn admits(&self, _: &Key) -> bool {
        self.check().is_ok()
    }
}

/// What no limiter can leave out: it must know the time and, when it admits, count where others see it.
#[derive(Default)]
struct Floor {
    clock: quanta::Clock,
    word: AtomicU64,
    admits: bool,
}

impl Contender for Floor {
    fn admits(&self, _: &Key) -> bool {
        black_box(self.clock.now());
        if self.admits {
            black_box(self.word.fetch_add(1, Ordering::AcqRel));
        } else {
            black_box(self.word.load(Ordering::Acquire));
        }
        self.admits
    }
}
