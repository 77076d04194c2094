//! Eight processes take all there is of one key after the other, and one of them is killed again
//! and again.

use std::time::{Duration, Instant};

use mirab::Limiter;

use crate::common::say;
use crate::common::shm::Shared;
use crate::crew::{Crew, role};
use crate::tally::{Count, MOST_KEYS, Tally};
use crate::{Role, limiter, share};

/// How many scenes share the time.
pub const SCENES: u32 = 12;
/// How often one is killed; where all is taken soon, more often.
pub const INTERVAL: Duration = Duration::from_millis(20);
pub const SHORT: Duration = Duration::from_millis(5);
pub const WORKERS: usize = 8;

/// A worker: takes from the key that all take from, until nothing is left of it.
pub fn hammers(role: &Role) {
    hammer_with(&role.limiter(), role);
}

pub fn hammer_with(limiter: &Limiter, role: &Role) {
    let tally = &role.tally;
    while !tally.is_over() {
        let key = tally.get(Count::Key);
        if key >= role.keys {
            return;
        }
        tally.add(Count::Begun, 1);
        if limiter.allow(key.to_be_bytes(), 1).unwrap() {
            tally.tell(key);
        } else {
            tally.next(key);
        }
    }
}

/// A small file for states of few numbers, and one for lists.
pub const NUMBERS: &str = "?max_keys=4096&log_entries=64&timeout_ms=20000";
pub const LISTS: &str = "?max_keys=200&log_entries=32768&timeout_ms=20000";

/// A policy, how much of it each key has, how many limits, and how many keys at most fit the file.
pub struct Scene {
    pub policy: &'static str,
    pub each: u64,
    pub file: &'static str,
    pub keys: u64,
    interval: Duration,
}

pub const fn of_numbers(policy: &'static str) -> Scene {
    Scene { policy, each: 1_000, file: NUMBERS, keys: 1_000, interval: INTERVAL }
}

pub const fn of_lists(policy: &'static str) -> Scene {
    Scene { policy, each: 400, file: LISTS, keys: 40, interval: SHORT }
}

impl Scene {
    /// Looks at every key once everybody has ended: nothing beyond the limit, and of each end at most
    /// `lost` decisions.
    #[track_caller]
    pub fn check(&self, limiter: &Limiter, tally: &Tally, lost: u64) -> u64 {
        let (mut kept, mut told) = (0, 0);
        for key in 0..self.keys.min(tally.get(Count::Key) + 1) {
            let of_key = tally.told(key);
            let peeked = limiter.peek(key.to_be_bytes(), 1).unwrap();
            let used: Vec<u64> = peeked.standings().map(|it| it.used).collect();
            assert!(used.iter().all(|it| *it == used[0]), "a step that is half: {used:?}");
            assert!(of_key <= used[0] && used[0] <= self.each, "key {key}: {of_key} told, {used:?} used");
            if key < tally.get(Count::Key) {
                assert_eq!(used[0], self.each, "key {key}: refused before");
            }
            kept += used[0];
            told += of_key;
        }
        assert!(kept - told <= lost, "{kept} taken and {told} told, but only {lost} may be lost");
        assert_eq!(limiter.stats().evicted, 0, "the file was too small for this test");
        told
    }

    /// Begins anew: nothing of the keys stays in the file.
    pub fn clear(&self, limiter: &Limiter, tally: &Tally) {
        (0..self.keys).for_each(|key| limiter.reset(key.to_be_bytes()).unwrap());
        assert_eq!(limiter.stats().keys, 0, "something is there that no key leads to");
        tally.clear();
    }

    pub fn play(&self, name: &str, time: Duration) {
        let (shared, tally) = (Shared::new("hammer"), Tally::new());
        let uri = shared.uri(self.file);
        let limiter = limiter(self.policy, &uri);
        assert!(self.keys <= MOST_KEYS);
        let begun = Instant::now();
        let (mut killed, mut told, mut rounds) = (0, 0, 0);
        while begun.elapsed() < time {
            let role = role(name, &uri, &tally, self.policy, self.keys);
            let mut crew = Crew::new(role, &tally, WORKERS);
            let is_done = || tally.get(Count::Key) >= self.keys;
            crew.kill_for(time.saturating_sub(begun.elapsed()), self.interval, is_done);
            let lost = crew.end();
            told += self.check(&limiter, &tally, lost);
            self.clear(&limiter, &tally);
            (killed, rounds) = (killed + lost, rounds + 1);
        }
        say(format_args!("{}: {told} told, {killed} killed, {rounds} rounds", self.policy));
        assert!(told > 0 && killed > 0);
    }
}

#[test]
fn a_token_bucket() {
    of_numbers("1000/365 days").play("hammers", share(SCENES));
}

#[test]
fn a_window_from_the_first() {
    of_numbers("fixed_window: 1000/30 days from first").play("hammers", share(SCENES));
}

#[test]
fn a_sliding_window() {
    of_numbers("sliding_window: 1000/365 days").play("hammers", share(SCENES));
}

#[test]
fn a_leaky_bucket() {
    of_numbers("leaky_bucket: 1000/365 days queue 999").play("hammers", share(SCENES));
}

#[test]
fn a_sliding_log() {
    of_lists("sliding_log: 400/hour").play("hammers", share(SCENES));
}

#[test]
fn a_sliding_log_of_buckets() {
    of_lists("sliding_log: 400/hour buckets 6").play("hammers", share(SCENES));
}

#[test]
fn leases_that_stay() {
    of_lists("concurrency: 400 for 1h").play("hammers", share(SCENES));
}

#[test]
fn a_policy_of_three() {
    let policy = "1000/365 days; fixed_window: 2000/30 days from first; sliding_window: 3000/365 days";
    of_numbers(policy).play("hammers", share(SCENES));
}

#[test]
fn a_policy_with_lists() {
    let policy = "400/365 days; sliding_log: 1000/hour; concurrency: 500 for 1h";
    of_lists(policy).play("hammers", share(SCENES));
}
