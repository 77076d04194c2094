//! Reading limits and policies.

use std::hint::black_box;

use mirab::{Limit, Policy};

use super::{Scene, scene};

const LIMITS: [(&str, &str); 5] = [
    ("short", "5/minute"),
    ("burst", "100/second burst 300"),
    ("named", "login=fixed_window: 10/minute from first"),
    ("buckets", "sliding_log: 1000 per 2 hours buckets 60"),
    ("concurrency", "concurrency: 20 for 30 s"),
];

pub fn scenes() -> Vec<Scene> {
    let limit = |(name, text)| {
        scene(format!("limit_{name}"), move || {
            Box::new(move || black_box(Limit::parse(black_box(text))).is_ok())
        })
    };
    let policy = "100/second burst 300; 1000/hour; sliding_window: 20000/day";
    let mut scenes: Vec<Scene> = LIMITS.map(limit).into();
    scenes.push(scene("policy_3", move || {
        Box::new(move || black_box(Policy::parse(black_box(policy))).is_ok())
    }));
    scenes
}
