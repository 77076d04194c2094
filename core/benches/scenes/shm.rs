//! The limiter on shared memory, used by one process alone.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use mirab::{Limiter, Policy, Store};

use super::{Operation, Scene, scene};

/// As on a memory store.
const HOT: &str = "4000000000 per 20 days";
const FRACTIONS: &str = "3999999979 per 20 days";
const LASTING: &str = "10000 per 20 days";
const REFUSED: &str = "1/hour";
const THREE: &str = "4000000000 per 20 days; 4000000000 per 40 days; 4000000000 per 60 days";

const KEY: &str = "user:00000012345";
const KEYS: usize = 100_000;
const STRIDE: usize = 61_803;

/// A file, removed when it is not needed any more.
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn scenes() -> Vec<Scene> {
    let allow = |policy: &'static str| move || asked(policy, |it| it.allow(KEY, 1).unwrap());
    vec![
        scene("allow_hot", allow(HOT)),
        scene("allow_hot_fractions", allow(FRACTIONS)),
        scene("acquire_hot", || asked(HOT, |it| black_box(it.acquire(KEY, 1).unwrap()).allowed())),
        scene("peek_hot", || asked(HOT, |it| black_box(it.peek(KEY, 1).unwrap()).allowed())),
        scene("allow_refused", || asked(REFUSED, |it| !it.allow(KEY, 1).unwrap())),
        scene("allow_policy_3", allow(THREE)),
        scene("allow_log_refused", || asked("sliding_log: 1/hour", |it| !it.allow(KEY, 1).unwrap())),
        scene("acquire_refund", || {
            asked(LASTING, |it| it.refund(&it.acquire(KEY, 1).unwrap()).unwrap() == 1)
        }),
        scene("allow_new_key", || many(400_000, LASTING, false)),
        scene("allow_evicting", || many(10_000, REFUSED, false)),
        scene("allow_100k_keys", || many(KEYS, LASTING, true)),
    ]
}

fn limiter(max_keys: usize, policy: &str) -> (Limiter, File) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let file = File(format!("/dev/shm/mirab-bench-{}-{count}", std::process::id()).into());
    let store = Store::open(&format!("shm://{}?max_keys={max_keys}", file.0.display())).unwrap();
    (Limiter::builder(Policy::parse(policy).unwrap()).store(store).build().unwrap(), file)
}

/// One key that has been there before.
fn asked(policy: &str, ask: impl Fn(&Limiter) -> bool + 'static) -> Operation {
    let (limiter, file) = limiter(1_000, policy);
    limiter.allow(KEY, 1).unwrap();
    Box::new(move || {
        let _held = &file;
        ask(&limiter)
    })
}

/// Many keys, each asked once before the first comes again; which may all have been there before.
fn many(max_keys: usize, policy: &str, were_there: bool) -> Operation {
    let (limiter, file) = limiter(max_keys, policy);
    let keys: Vec<String> = (0..KEYS).map(|key| format!("user:{key:011}")).collect();
    let first = if were_there { KEYS } else { 10_000 };
    keys.iter().take(first).for_each(|key| assert!(limiter.allow(key, 1).unwrap()));
    let mut place = first % KEYS;
    let stride = if were_there { STRIDE } else { 1 };
    Box::new(move || {
        let _held = &file;
        place = (place + stride) % KEYS;
        limiter.allow(&keys[place], 1).unwrap()
    })
}
