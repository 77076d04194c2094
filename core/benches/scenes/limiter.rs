//! The limiter on a memory store: which question, how many keys, how many limits.

use std::hint::black_box;

use mirab::{Decision, Limiter, Policy, Store};

use super::{Operation, Scene, limiter, scene};

/// Never refuses, and fills so slowly that the bucket is not full when it is asked again: what is full says
/// nothing, and a store may drop it.
const HOT: &str = "4000000000 per 20 days";
/// The same for many keys, each of which is asked seldom.
const LASTING: &str = "10000 per 20 days";
/// Refuses all but the first.
const REFUSED: &str = "1/hour";

const KEY: &str = "user:00000012345";
const KEYS: usize = 100_000;
/// From one key to the next: it visits all of them, and no neighbour of the last.
const STRIDE: usize = 61_803;

pub fn scenes() -> Vec<Scene> {
    let mut scenes = vec![
        scene("allow_hot", || asked(HOT, |it| it.allow(KEY, 1).unwrap())),
        scene("acquire_hot", || asked(HOT, |it| black_box(it.acquire(KEY, 1).unwrap()).allowed())),
        scene("peek_hot", || asked(HOT, |it| black_box(it.peek(KEY, 1).unwrap()).allowed())),
        scene("allow_refused", || asked(REFUSED, |it| !it.allow(KEY, 1).unwrap())),
        scene("acquire_refused", || asked(REFUSED, |it| !black_box(it.acquire(KEY, 1).unwrap()).allowed())),
        scene("allow_new_key", new_key),
        scene("allow_evicting", evicting),
        scene("allow_100k_keys", || many_keys(|it, key| it.allow(key, 1).unwrap())),
        scene("acquire_100k_keys", || many_keys(|it, key| black_box(it.acquire(key, 1).unwrap()).allowed())),
    ];
    for limits in 1..=7 {
        let policy = policy(limits);
        scenes.push(scene(format!("allow_policy_{limits}"), move || {
            asked(&policy, |it| it.allow(KEY, 1).unwrap())
        }));
    }
    scenes.extend([
        scene("acquire_policy_3", || {
            asked(&policy(3), |it| black_box(it.acquire(KEY, 1).unwrap()).allowed())
        }),
        scene("acquire_many_8", acquire_many),
        scene("acquire_refund", || {
            asked(LASTING, |it| it.refund(&it.acquire(KEY, 1).unwrap()).unwrap() == 1)
        }),
    ]);
    scenes
}

/// One key that has been there before.
fn asked(policy: &str, ask: impl Fn(&Limiter) -> bool + 'static) -> Operation {
    let limiter = limiter(policy);
    limiter.allow(KEY, 1).unwrap();
    Box::new(move || ask(&limiter))
}

/// The first is the hot one.
fn policy(limits: usize) -> String {
    let limit = |turn| format!("4000000000 per {} days", 20 * turn);
    (1..=limits).map(limit).collect::<Vec<_>>().join("; ")
}

fn keys() -> Vec<String> {
    (0..KEYS).map(|key| format!("user:{key:011}")).collect()
}

/// A key that was never there; after all of them the store is made anew.
fn new_key() -> Operation {
    let (keys, mut next, mut fresh) = (keys(), 0, limiter(LASTING));
    Box::new(move || {
        if next == KEYS {
            (next, fresh) = (0, limiter(LASTING));
        }
        next += 1;
        fresh.allow(&keys[next - 1], 1).unwrap()
    })
}

/// A key that is not there, in a store that is full of live ones.
fn evicting() -> Operation {
    let store = Store::open("memory:?max_keys=10000").unwrap();
    let limiter = Limiter::builder(Policy::parse(REFUSED).unwrap()).store(store).build().unwrap();
    let (keys, mut next) = (keys(), 0);
    let mut ask = move || {
        next = (next + 1) % KEYS;
        limiter.allow(&keys[next], 1).unwrap()
    };
    assert!((0..10_000).all(|_| ask()));
    Box::new(ask)
}

/// Keys that have all been there, in no order.
fn many_keys(ask: impl Fn(&Limiter, &str) -> bool + 'static) -> Operation {
    let (limiter, keys, mut place) = (limiter(LASTING), keys(), 0);
    keys.iter().for_each(|key| assert!(limiter.allow(key, 1).unwrap()));
    Box::new(move || {
        place = (place + STRIDE) % KEYS;
        ask(&limiter, &keys[place])
    })
}

/// Eight keys in one step.
fn acquire_many() -> Operation {
    let limiter = limiter(HOT);
    let items: Vec<(String, u64)> = keys().into_iter().take(8).map(|key| (key, 1)).collect();
    Box::new(move || black_box(limiter.acquire_many(&items).unwrap()).iter().all(Decision::allowed))
}
