//! Each algorithm with a hundred units in use: as many end as come, and every request is admitted.

use std::hint::black_box;

use mirab::{Limiter, ManualClock, Policy};

use super::{Operation, Scene, scene};

const KEY: &str = "user:00000012345";

/// What is taken at first, and the time between two requests afterwards: a hundred of them in a second.
const IN_USE: u64 = 100;
const PACE_US: u64 = 10_000;

const ALGORITHMS: &[(&str, &str)] = &[
    ("token_bucket", "100/second burst 300"),
    ("leaky_bucket", "leaky_bucket: 100/second queue 300"),
    ("fixed_window", "fixed_window: 300/second"),
    ("fixed_window_first", "fixed_window: 300/second from first"),
    #[cfg(feature = "calendar")]
    ("fixed_window_calendar", "fixed_window: 20000000/day in Africa/Cairo"),
    ("sliding_window", "sliding_window: 300/second"),
    ("sliding_log", "sliding_log: 300/second"),
    ("sliding_log_buckets", "sliding_log: 300/second buckets 10"),
    ("concurrency", "concurrency: 300 for 1 s"),
];

pub fn scenes() -> Vec<Scene> {
    let mut scenes = Vec::new();
    for (name, limit) in ALGORITHMS {
        scenes.push(scene(format!("{name}_allow"), move || asked(limit, |it| it.allow(KEY, 1).unwrap())));
        scenes.push(scene(format!("{name}_acquire"), move || {
            asked(limit, |it| black_box(it.acquire(KEY, 1).unwrap()).allowed())
        }));
    }
    scenes.push(scene("concurrency_release", || {
        asked("concurrency: 300 for 1 s", |it| it.release(&it.acquire(KEY, 1).unwrap()).unwrap() == 1)
    }));
    scenes
}

/// One key, and a clock that goes on by the pace before each request.
fn asked(policy: &str, ask: impl Fn(&Limiter) -> bool + 'static) -> Operation {
    let clock = ManualClock::new(1_700_000_000_000_000).unwrap();
    let limiter = Limiter::builder(Policy::parse(policy).unwrap()).clock(clock.clone()).build().unwrap();
    assert!(limiter.allow(KEY, IN_USE).unwrap());
    let turn = move || {
        clock.advance_us(PACE_US).unwrap();
        ask(&limiter)
    };
    assert!((0..200).all(|_| turn()));
    Box::new(turn)
}
