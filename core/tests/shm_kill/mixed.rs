//! Every operation at once, while processes are killed: what is given back is given back once, leases are
//! never too many, blocks and resets go by.

use std::time::Duration;

use crate::common::shm::Shared;
use crate::common::{Random, say};
use crate::crew::{Crew, role};
use crate::hammer::{INTERVAL, LISTS, NUMBERS, SCENES, WORKERS};
use crate::tally::{Count, Tally};
use crate::{Role, limiter, share};

/// As many as the limit allows at once, of a worker that may take two.
const LEASES: u64 = 12;

/// A worker: takes a lease or two, and gives each back.
pub fn leases(role: &Role) {
    let (limiter, tally) = (role.limiter(), &role.tally);
    while !tally.is_over() {
        tally.add(Count::Begun, 1);
        let mut held = Vec::new();
        for _ in 0..2 {
            let decision = limiter.acquire("key", 1).unwrap();
            if decision.allowed() {
                if tally.add(Count::InUse, 1) > role.keys {
                    tally.add(Count::TooMany, 1);
                }
                tally.add(Count::Taken, 1);
                held.push(decision);
            }
        }
        for decision in held {
            // Before: whoever is killed between the two keeps what is counted as free.
            tally.take(Count::InUse, 1);
            assert_eq!(limiter.release(&decision).unwrap(), 1);
        }
    }
}

#[test]
fn leases_that_are_given_back() {
    let (shared, tally) = (Shared::new("leases"), Tally::new());
    let uri = shared.uri(LISTS);
    // Whoever is killed keeps his until they end, which is later than this.
    let limit = LEASES + 2 * 60 * (share(SCENES).as_secs() + 10);
    let policy = format!("concurrency: {limit} for 1h");
    let limiter = limiter(&policy, &uri);
    let mut crew = Crew::new(role("leases", &uri, &tally, &policy, limit), &tally, WORKERS);
    crew.kill_for(share(SCENES), INTERVAL, || false);
    let killed = crew.end();
    let used = limiter.peek("key", 1).unwrap().used();
    say(format_args!("leases: {} told, {killed} killed, {used} held", tally.get(Count::Taken)));
    assert!(tally.get(Count::Taken) > 0);
    assert_eq!(tally.get(Count::TooMany), 0);
    assert!(used <= 2 * killed, "{used} leases are held of {killed} that were killed");
    assert!(used >= tally.get(Count::InUse), "of those that were told and not given back");
}

/// A worker: takes, and gives back all; where there is a key, a part, or takes more.
pub fn gives_back(role: &Role) {
    let (limiter, tally) = (role.limiter(), &role.tally);
    let mut random = Random(u64::from(std::process::id()));
    while !tally.is_over() {
        tally.add(Count::Begun, 1);
        let decision = limiter.acquire("key", 3).unwrap();
        if !decision.allowed() {
            continue;
        }
        tally.add(Count::Taken, 3);
        match if role.keys == 0 { 0 } else { random.below(3) } {
            0 => {
                tally.add(Count::Given, limiter.refund(&decision).unwrap());
            }
            1 => {
                limiter.commit(&decision, 1).unwrap();
                tally.add(Count::Given, 2);
            }
            _ => {
                limiter.commit(&decision, 5).unwrap();
                tally.add(Count::Taken, 2);
            }
        }
    }
}

fn give_back(policy: &str, file: &str, keys: u64) {
    let (shared, tally) = (Shared::new("given"), Tally::new());
    let uri = shared.uri(file);
    let limiter = limiter(policy, &uri);
    let mut crew = Crew::new(role("gives_back", &uri, &tally, policy, keys), &tally, WORKERS);
    crew.kill_for(share(6 * SCENES), INTERVAL, || false);
    let killed = crew.end();
    let (taken, given) = (tally.get(Count::Taken), tally.get(Count::Given));
    let peeked = limiter.peek("key", 1).unwrap();
    say(format_args!("{policy}: {taken} taken, {given} given back, {killed} killed"));
    assert!(taken > 0);
    for standing in peeked.standings() {
        let (used, net) = (standing.used, taken - given);
        // The most that one killed process may not have told.
        assert!(used.abs_diff(net) <= 3 * killed, "{policy}: {used} used, {net} told, {killed} killed");
    }
}

#[test]
fn what_is_given_back() {
    give_back("fixed_window: 4000000000/365 days from first", NUMBERS, 1);
    give_back(
        "fixed_window: 4000000000/365 days from first; sliding_window: 4000000000/365 days",
        NUMBERS,
        1,
    );
    give_back("sliding_log: 4000000000/hour buckets 60", LISTS, 1);
    give_back("sliding_log: 30000/hour", LISTS, 0);
    give_back("concurrency: 15000 for 1h", LISTS, 0);
    give_back("30000/1000 days; sliding_log: 30000/hour; concurrency: 15000 for 1h", LISTS, 0);
}

/// A worker: anything, on two keys.
pub fn anything(role: &Role) {
    let (limiter, tally) = (role.limiter(), &role.tally);
    let mut random = Random(u64::from(std::process::id()));
    let mut last = None;
    while !tally.is_over() {
        tally.add(Count::Begun, 1);
        let key = random.below(role.keys).to_be_bytes();
        match random.below(12) {
            0 => limiter.block(key, Duration::from_millis(1 + random.below(20))).unwrap(),
            1 => limiter.unblock(key).unwrap(),
            2 => limiter.reset(key).unwrap(),
            3 => drop(limiter.peek(key, 1).unwrap()),
            4 => {
                let many: Vec<_> = (0..role.keys).map(|key| (key.to_be_bytes(), 1)).collect();
                drop(limiter.acquire_many(&many).unwrap());
            }
            5 | 6 => {
                if let Some(decision) = last.take() {
                    assert!(limiter.refund(&decision).unwrap() <= 2);
                }
            }
            7 => {
                if let Some(decision) = last.take() {
                    limiter.commit(&decision, random.below(4)).unwrap();
                }
            }
            _ => {
                let decision = limiter.acquire(key, 1 + random.below(2)).unwrap();
                last = decision.allowed().then_some(decision);
            }
        }
    }
}

#[test]
fn everything_at_once() {
    for policy in [
        "50/hour",
        "50/hour; sliding_log: 60/hour",
        "sliding_log: 50/hour buckets 10; sliding_window: 99/day",
    ] {
        let (shared, tally) = (Shared::new("anything"), Tally::new());
        let uri = shared.uri(LISTS);
        let limiter = limiter(policy, &uri);
        let keys = 4;
        let mut crew = Crew::new(role("anything", &uri, &tally, policy, keys), &tally, WORKERS);
        crew.kill_for(share(3 * SCENES), INTERVAL, || false);
        let killed = crew.end();
        say(format_args!("{policy}: {} of anything, {killed} killed", tally.get(Count::Begun)));
        for key in (0..keys).map(u64::to_be_bytes) {
            limiter.unblock(key).unwrap();
            assert!(limiter.peek(key, 1).unwrap().standings().all(|it| it.used <= it.limit));
            limiter.reset(key).unwrap();
        }
        assert_eq!(limiter.stats().keys, 0, "{policy}");
        for key in (0..keys).map(u64::to_be_bytes) {
            assert_eq!((0..200).filter(|_| limiter.allow(key, 1).unwrap()).count(), 50, "{policy}");
        }
    }
}
