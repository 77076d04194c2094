//! More keys than there is room for: each comes, takes its place from another and goes, while processes are
//! killed; what owes most stays, and stays exact.

use crate::common::shm::Shared;
use crate::common::{Random, say};
use crate::crew::{Crew, role};
use crate::hammer::{SCENES, SHORT, WORKERS};
use crate::tally::{Count, Tally};
use crate::{Role, limiter, share};

/// Room for few keys, and few lists.
const FILE: &str = "?max_keys=64&log_entries=64&timeout_ms=20000";
const KEYS: u64 = 2_000;

/// All of these on the same keys; the first is for the key that owes most, too.
const RICH: &str = "4000000000/365 days";
const POOR: [&str; 4] = [
    "5/minute",
    "sliding_log: 20/minute",
    "fixed_window: 5/minute; sliding_log: 30/minute buckets 12",
    "concurrency: 8 for 30s",
];

/// A worker: now a unit of the rich key, now one of any other.
pub fn evicts(role: &Role) {
    let rich = role.limiter();
    let poor = POOR.map(|policy| limiter(policy, &role.uri));
    let (mut random, tally) = (Random(u64::from(std::process::id())), &role.tally);
    while !tally.is_over() {
        tally.add(Count::Begun, 1);
        if random.one_in(4) {
            assert!(rich.allow("rich", 1).unwrap());
            tally.add(Count::Taken, 1);
            continue;
        }
        let key = random.below(role.keys).to_be_bytes();
        let limiter = random.pick(&poor);
        match random.below(8) {
            0 => drop(limiter.peek(key, 1).unwrap()),
            1 => limiter.reset(key).unwrap(),
            _ => drop(limiter.allow(key, 1 + random.below(3)).unwrap()),
        }
    }
}

#[test]
fn keys_come_and_go() {
    let (shared, tally) = (Shared::new("evicting"), Tally::new());
    let uri = shared.uri(FILE);
    let rich = limiter(RICH, &uri);
    let first = 3_000_000_000;
    assert!(rich.allow("rich", first).unwrap());
    let mut crew = Crew::new(role("evicts", &uri, &tally, RICH, KEYS), &tally, WORKERS);
    crew.kill_for(share(SCENES), SHORT, || false);
    let killed = crew.end();
    let (told, used) = (tally.get(Count::Taken), rich.peek("rich", 1).unwrap().used());
    // What flows in is 127 units each second.
    let flowed = 130 * (share(SCENES).as_secs() + 60);
    assert!(
        used <= first + told + killed && used + flowed >= first + told,
        "{told} told, {used} used, {killed}"
    );
    let stats = rich.stats();
    say(format_args!("evicting: {told} told, {killed} killed, {} evicted", stats.evicted));
    assert!(told > 0 && stats.evicted > 0 && stats.keys <= 80, "{stats:?}");

    // All of the room is still there: every key can be given up, and as many are kept as before.
    for limiter in POOR.map(|policy| limiter(policy, &uri)) {
        (0..KEYS).for_each(|key| limiter.reset(key.to_be_bytes()).unwrap());
    }
    rich.reset("rich").unwrap();
    assert_eq!(rich.stats().keys, 0);
    let last = limiter("5/hour", &uri);
    assert!((0..64_u64).all(|key| last.allow(key.to_be_bytes(), 1).unwrap()));
    assert_eq!((last.stats().keys, last.stats().evicted), (64, stats.evicted), "keys lost their room");
    (0..64_u64).for_each(|key| last.reset(key.to_be_bytes()).unwrap());
    let last = limiter("sliding_log: 64/hour", &uri);
    for key in 0..3_u64 {
        assert!((0..64).all(|_| last.allow(key.to_be_bytes(), 1).unwrap()));
    }
    assert_eq!(last.stats().evicted, stats.evicted, "lists lost their room");
}
