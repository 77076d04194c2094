//! The protocol of parts and chains, played in every order: whatever comes between, and wherever one is killed,
//! nobody waits for ever, nobody gets more than there is, what is whole stays whole, and all that is lost is what the
//! one who was killed had asked for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ShmStore;
use super::file;
use super::part::{Control, Part};
use super::settings::Settings;
use super::turns::{self, Bounds, explore};
use crate::algorithm::interval::Span;
use crate::clock::Time;
use crate::policy::Policy;
use crate::receipt::{Lease, Receipt};
use crate::store::Refund;
use crate::store::charge::{Charge, Group, Mode, Request};

/// A store of one small part, or two, and how to begin with it again.
struct Scene {
    store: Arc<ShmStore>,
    words: Mutex<Vec<Vec<u64>>>,
}

const NOW: u64 = 1_000_000_000;

impl Scene {
    fn new(name: &str, max_keys: usize) -> Self {
        turns::look();
        let [random, _] = crate::store::bucket::random_seed();
        let rest = format!("unit-{name}-{random:x}?max_keys={max_keys}&log_entries=4");
        let settings = Settings::parse(&rest).unwrap();
        let mapped = file::open(&settings).unwrap();
        std::fs::remove_file(&settings.path).unwrap();
        let store = Arc::new(ShmStore::over(settings, mapped));
        Self { store, words: Mutex::default() }
    }

    fn parts(&self) -> &'static [Part] {
        &self.store.mapped().parts
    }

    /// What is there now is what every order begins with.
    fn keep(&self) {
        let words = self.parts().iter().map(|part| part.all.iter().map(|word| word.get()).collect());
        *self.words.lock().unwrap() = words.collect();
    }

    fn begin(&self) {
        for (part, words) in self.parts().iter().zip(&*self.words.lock().unwrap()) {
            part.all.iter().zip(words).for_each(|(word, &value)| word.set(value));
        }
    }

    fn acquire(&self, policy: &Policy, key: &[u8], mode: Mode, at: u64) -> bool {
        let request = Request { buckets: policy.buckets(), key, cost: 1 };
        let time = Time::given_us(at).unwrap();
        self.store.decide_request(&request, mode, time, |verdict| verdict.admitted).unwrap()
    }

    /// How many more pass now.
    fn left(&self, policy: &Policy, key: &[u8]) -> usize {
        (0..100).take_while(|_| self.acquire(policy, key, Mode::Acquire, NOW)).count()
    }

    /// That every slot is free or in one chain, every granule free or of one list, and nobody holds anything.
    fn is_sound(&self) {
        for part in self.parts() {
            // What a dead one holds, the next to need it takes from him.
            drop(part.lock(self.store.mapped().holder(Duration::from_secs(1)).unwrap()).unwrap());
            let before: Vec<u64> = part.marks.iter().map(|mark| mark.get()).collect();
            let [used, blocks] = [Control::Used, Control::Blocks].map(|which| part.control(which).get());
            let free = |part: &Part| {
                let mut next = part.control(Control::Free).get();
                let mut count = 0;
                while next != 0 {
                    next = part.slots[next as usize - 1][3].get() & 0xffff_ffff;
                    count += 1;
                }
                count
            };
            let was_free = free(part);
            part.make_anew();
            assert_eq!(part.marks.iter().map(|mark| mark.get()).collect::<Vec<u64>>(), before);
            assert_eq!(
                [Control::Used, Control::Blocks].map(|which| part.control(which).get()),
                [used, blocks]
            );
            assert_eq!(free(part), was_free);
            assert_eq!(was_free + used as usize, part.slots.len());
        }
    }
}

/// How deep: two turns and a kill unless told otherwise.
fn bounds(turns: usize) -> Bounds {
    let more = std::env::var("MIRAB_TURNS").map_or(0, |text| text.parse().unwrap());
    Bounds { turns: turns + more, kills: 1 }
}

/// Processes that each take one where `left` are left.
fn all_take(name: &str, policy: &str, left: usize, before: usize, processes: usize, turns: usize) {
    let scene = Scene::new(name, 8);
    let policy = Policy::parse(policy).unwrap();
    for _ in 0..before {
        assert!(scene.acquire(&policy, b"key", Mode::Acquire, NOW - 1));
    }
    scene.keep();
    let take = || scene.acquire(&policy, b"key", Mode::Acquire, NOW);
    let takers: Vec<&(dyn Fn() -> bool + Sync)> = (0..processes).map(|_| &take as _).collect();
    let count = explore(
        bounds(turns),
        &takers,
        || scene.begin(),
        |told| {
            let passed = told.iter().filter(|told| **told == Some(true)).count();
            let killed = told.iter().filter(|told| told.is_none()).count();
            let more = scene.left(&policy, b"key");
            assert!(passed + more <= left, "{passed} and {more} of {left}");
            assert!(passed + more + killed >= left, "{passed}, {killed} killed and {more} of {left}");
            scene.is_sound();
        },
    );
    assert!(count > 100, "{count}");
}

#[test]
fn one_word() {
    all_take("word", "3/hour", 1, 2, 2, 2);
}

#[test]
fn a_count_beside_its_window() {
    all_take("count", "fixed_window: 3/hour from first", 1, 2, 2, 2);
}

#[test]
fn two_words_and_three_processes() {
    all_take("words", "7/1009us burst 3", 2, 1, 3, 1);
}

#[test]
fn a_window_of_two_counts() {
    all_take("pair", "sliding_window: 3/hour", 1, 2, 2, 2);
}

#[test]
fn a_new_key() {
    all_take("new", "1/hour", 1, 0, 2, 1);
}

#[test]
fn a_policy() {
    all_take("policy", "3/hour; fixed_window: 4/day from first", 1, 2, 2, 1);
}

#[test]
fn a_new_policy() {
    all_take("policy-new", "1/hour; fixed_window: 4/day from first", 1, 0, 2, 1);
}

#[test]
fn a_log_that_is_full() {
    all_take("log", "sliding_log: 4/hour", 1, 3, 2, 1);
}

#[test]
fn a_log_that_grows_and_moves() {
    all_take("log-new", "sliding_log: 2/hour", 2, 0, 2, 1);
}

#[test]
fn leases() {
    all_take("leases", "concurrency: 2 for 1h", 1, 1, 2, 1);
}

#[test]
fn sub_windows() {
    all_take("buckets", "sliding_log: 2/hour buckets 2", 1, 1, 2, 1);
}

/// One gives back while others take: nobody gets more than there is, and what is given back comes once.
#[test]
fn what_is_given_back_comes_once() {
    for (name, policy) in [
        ("back", "3/hour"),
        ("back-window", "fixed_window: 3/hour from first"),
        ("back-log", "sliding_log: 3/hour"),
    ] {
        let scene = Scene::new(name, 8);
        let policy = Policy::parse(policy).unwrap();
        let time = Time::given_us(NOW).unwrap();
        assert!((0..3).all(|_| scene.acquire(&policy, b"key", Mode::Acquire, NOW)));
        scene.keep();
        let at = crate::clock::Now { steady: NOW, wall: NOW };
        let receipt = Receipt { at, cost: 1, lease: Lease::default(), full_at: Span::default(), origin: 0 };
        let give = || {
            let charges = [Charge { bucket: &policy.buckets()[0], key: b"key", cost: 1 }];
            let refund = Refund { charges: &charges, receipt, undo: false };
            scene.store.refund(&refund, time).unwrap()[0] == 1
        };
        let takers: [&(dyn Fn() -> bool + Sync); 2] =
            [&give, &|| scene.acquire(&policy, b"key", Mode::Acquire, NOW)];
        explore(
            bounds(1),
            &takers,
            || scene.begin(),
            |told| {
                let [given, taken] = [told[0], told[1]].map(|it| usize::from(it == Some(true)));
                let killed = told.iter().filter(|told| told.is_none()).count();
                assert!(told[0] != Some(false));
                let left = scene.left(&policy, b"key");
                assert!(left + taken <= 1 && left + taken + killed >= given, "{left} {told:?}");
                scene.is_sound();
            },
        );
    }
}

/// One takes from the policy, the other from one of its limits.
#[test]
fn a_policy_and_one_of_its_limits() {
    let scene = Scene::new("one-of", 8);
    let both = Policy::parse("a=3/hour; b=fixed_window: 9/day from first").unwrap();
    let one = Policy::parse("a=3/hour").unwrap();
    assert!(
        scene.acquire(&both, b"key", Mode::Acquire, NOW) && scene.acquire(&both, b"key", Mode::Acquire, NOW)
    );
    scene.keep();
    let takers: [&(dyn Fn() -> bool + Sync); 2] =
        [&|| scene.acquire(&both, b"key", Mode::Acquire, NOW), &|| {
            scene.acquire(&one, b"key", Mode::Acquire, NOW)
        }];
    explore(
        bounds(2),
        &takers,
        || scene.begin(),
        |told| {
            let passed = told.iter().filter(|told| **told == Some(true)).count();
            let killed = told.iter().filter(|told| told.is_none()).count();
            let more = scene.left(&one, b"key");
            assert!(passed + more <= 1 && passed + more + killed >= 1);
            // Of the other limit only what was taken together is gone.
            let other = scene.left(&Policy::parse("b=fixed_window: 9/day from first").unwrap(), b"key");
            let together = usize::from(told[0] == Some(true));
            assert!(other + together <= 7 && other + together + killed >= 7, "{other} {told:?}");
            scene.is_sound();
        },
    );
}

/// A part that is full of others: one comes new, one takes from who may be forgotten for it.
#[test]
fn room_is_made_while_others_take() {
    let scene = Scene::new("evict", 2);
    let (short, long) = (Policy::parse("2/second").unwrap(), Policy::parse("2/hour").unwrap());
    assert!(scene.acquire(&long, b"owes", Mode::Acquire, NOW));
    assert!(scene.acquire(&short, b"spent", Mode::Acquire, NOW - 600_000));
    scene.keep();
    let takers: [&(dyn Fn() -> bool + Sync); 2] =
        [&|| scene.acquire(&long, b"new", Mode::Acquire, NOW), &|| {
            scene.acquire(&short, b"spent", Mode::Acquire, NOW)
        }];
    explore(
        bounds(1),
        &takers,
        || scene.begin(),
        |told| {
            assert!(told.iter().all(|told| *told != Some(false)));
            scene.acquire(&long, b"new", Mode::Peek, NOW);
            scene.acquire(&short, b"spent", Mode::Acquire, NOW);
            scene.is_sound();
            assert_eq!(scene.left(&long, b"owes"), 1);
        },
    );
}

/// A group over two parts, beside who takes from each of them.
#[test]
fn a_group_over_two_parts_is_whole_or_nothing() {
    let scene = Scene::new("group", 128);
    let policy = Policy::parse("2/hour").unwrap();
    let of = |key: &[u8]| scene.store.mapped().part_index(scene.store.mapped().key(key));
    let names: Vec<Vec<u8>> = (0..64_u8).map(|name| vec![name]).collect();
    let first = names.iter().find(|name| of(name) == 0).unwrap().as_slice();
    let second = names.iter().find(|name| of(name) == 1).unwrap().as_slice();
    let bucket = &policy.buckets()[0];
    let together = || {
        let charges = [first, second].map(|key| Charge { bucket, key, cost: 1 });
        let group = Group { charges: charges.into_iter().collect() };
        let decided = scene.store.decide(&[group], Mode::Acquire, Time::given_us(NOW).unwrap()).unwrap();
        decided.into_iter().all(|outcome| outcome.unwrap().admitted)
    };
    assert!(together());
    scene.keep();
    let begin = || scene.begin();
    let takers: [&(dyn Fn() -> bool + Sync); 2] =
        [&together, &|| scene.acquire(&policy, second, Mode::Acquire, NOW)];
    explore(bounds(1), &takers, begin, |told| {
        let killed = told.iter().filter(|told| told.is_none()).count();
        let (one, other) = (scene.left(&policy, first), scene.left(&policy, second));
        let taken = |told: Option<bool>| usize::from(told == Some(true));
        let (both, alone) = (taken(told[0]), taken(told[1]));
        assert!(one + both <= 1 && one + both + killed >= 1, "{one} {told:?}");
        assert!(other + both + alone <= 1 && other + both + alone + killed >= 1, "{other} {told:?}");
        // Who was killed took from both, or from none.
        if told[0].is_none() && told[1].is_some() {
            assert_eq!(one, other + alone, "{told:?}");
        }
        scene.is_sound();
    });
}
