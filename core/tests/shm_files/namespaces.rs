//! Containers: processes that see other processes and another clock, and the same file.

use std::thread;
use std::time::Duration;

use mirab::Store;

use crate::common::shm::Shared;
use crate::common::{Random, number, say};
use crate::workers::{self, Worker, may_go_on, tell};
use crate::{limiter, taken};

const PARAMETERS: &str = "?max_keys=100&log_entries=64&timeout_ms=5000";

/// A namespace of processes: whose number there is 1, and means nothing here.
fn of_processes() -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["unshare", "-pf", "--kill-child"], &["unshare", "-Urpf", "--kill-child"]];
    found("processes", &ways)
}

fn of_time(earlier: bool) -> Option<&'static [&'static str]> {
    let ways: [&[&str]; 2] = if earlier {
        [&["unshare", "-Tf", "--boottime", "-100"], &["unshare", "-UrTf", "--boottime", "-100"]]
    } else {
        [&["unshare", "-Tf", "--boottime", "1000000"], &["unshare", "-UrTf", "--boottime", "1000000"]]
    };
    found("time", &ways)
}

fn found<'a>(of: &str, ways: &[&'a [&'a str]]) -> Option<&'a [&'a str]> {
    let found = ways.iter().copied().find(|way| workers::can(&[way, &["true"][..]].concat()));
    if found.is_none() {
        say(format_args!("a namespace of {of}: neither this user nor this machine can make one"));
    }
    found
}

#[test]
fn processes_of_several_namespaces_share_one_bucket() {
    const TEST: &str = "namespaces::processes_of_several_namespaces_share_one_bucket";
    if let Some(role) = workers::role() {
        let store = Store::open(&role[0]).unwrap();
        let all = ["2000/day", "sliding_log: 60/day", "1500/hour; 3000/30 days"];
        let limiters = all.map(|policy| limiter(policy, &store));
        tell(std::process::id());
        assert!(may_go_on());
        let taken = limiters.each_ref().map(|limiter| taken(limiter, "key"));
        return tell(format_args!("{} {} {}", taken[0], taken[1], taken[2]));
    }
    let Some(around) = of_processes() else { return };
    let shared = Shared::new("pids");
    let uri = shared.uri(PARAMETERS);
    let start = |around: &[&str]| Worker::of(&mut workers::command(around, TEST, &[&uri]));
    let mut all = [start(around), start(&[]), start(around), start(&[])];
    let numbers = all.each_mut().map(Worker::hears);
    assert!(numbers[0] == numbers[2] && numbers[1] != numbers[3], "{numbers:?}");
    all.iter_mut().for_each(Worker::go);
    let all = all.map(|it| it.end().remove(0));
    let sum = |at| all.iter().map(|it| it.split(' ').nth(at).unwrap().parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!([sum(0), sum(1), sum(2)], [2_000, 60, 1_500], "{all:?}");
}

/// The dead of another namespace block nobody, and the living of one are not taken for dead.
#[test]
fn who_is_killed_in_another_namespace_blocks_nobody() {
    const TEST: &str = "namespaces::who_is_killed_in_another_namespace_blocks_nobody";
    if let Some(role) = workers::role() {
        let store = Store::open(&role[0]).unwrap();
        let all = ["1000000000/day", "sliding_log: 60/second", "9/second; 1000000000/day"];
        let limiters = all.map(|policy| limiter(policy, &store));
        tell("decides");
        loop {
            limiters.iter().for_each(|it| assert!(it.allow("key", 1).is_ok()));
        }
    }
    let Some(around) = of_processes() else { return };
    let shared = Shared::new("killed");
    let uri = shared.uri(PARAMETERS);
    let here = limiter("1000000000/day", &Store::open(&uri).unwrap());
    let mut random = Random(5);
    for round in 0..number("MIRAB_KILLS", 20) {
        let start = |around: &[&str]| Worker::of(&mut workers::command(around, TEST, &[&uri]));
        let mut all = [start(around), start(if round % 2 == 0 { &[] } else { around })];
        all.iter_mut().for_each(|it| assert_eq!(it.hears(), "decides"));
        thread::sleep(Duration::from_micros(random.below(20_000)));
        for worker in &mut all {
            worker.kill();
            for _ in 0..100 {
                assert!(here.allow("key", 1).is_ok(), "round {round}: {:?}", here.allow("key", 1));
            }
        }
    }
}

/// The clock of a namespace may show another time since the start: they go by one all the same.
#[test]
fn processes_of_several_clocks_share_one_bucket() {
    const TEST: &str = "namespaces::processes_of_several_clocks_share_one_bucket";
    if let Some(role) = workers::role() {
        let limiter = limiter("10/hour", &Store::open(&role[0]).unwrap());
        let count: u64 = role[1].parse().unwrap();
        let taken = (0..count).filter(|_| limiter.allow("key", 1).unwrap()).count();
        let left = limiter.peek("key", 1).unwrap();
        return tell(format_args!("{taken} {} {}", left.remaining(), left.reset_after().as_secs()));
    }
    for earlier in [false, true] {
        let Some(around) = of_time(earlier) else { continue };
        for is_inside_first in [false, true] {
            let shared = Shared::new("time");
            let uri = shared.uri(PARAMETERS);
            let take = |inside: bool, count: &str| {
                let around = if inside { around } else { &[] };
                Worker::of(&mut workers::command(around, TEST, &[&uri, count])).end().remove(0)
            };
            let told = [take(is_inside_first, "4"), take(!is_inside_first, "3"), take(is_inside_first, "5")];
            for (told, (taken, left, least)) in told.iter().zip([(4, 6, 1_300), (3, 3, 2_400), (3, 0, 3_400)])
            {
                let numbers: Vec<u64> = told.split(' ').map(|it| it.parse().unwrap()).collect();
                assert_eq!(numbers[..2], [taken, left], "{told}");
                assert!((least..=3_600).contains(&numbers[2]), "{told}");
            }
        }
    }
}
