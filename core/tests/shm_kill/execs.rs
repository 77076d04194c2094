//! A process that becomes another program while its threads decide: what they held is free, though the process
//! has the same number and lives.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::shm::Shared;
use crate::common::{Random, say};
use crate::crew::{self, Crew, command, end_of, role};
use crate::hammer::{hammer_with, of_lists, of_numbers};
use crate::tally::{Count, Tally};
use crate::{Role, limiter, until};

const THREADS: u64 = 2;
const TIMES: u64 = 60;

/// Hammers with threads, until this process is another program.
fn becomes(role: &Role, mut program: Command) -> ! {
    let limiter = role.limiter();
    thread::scope(|scope| {
        (0..THREADS).for_each(|_| drop(scope.spawn(|| hammer_with(&limiter, role))));
        let begun = role.tally.get(Count::Begun);
        until("its own first decisions", || {
            role.tally.get(Count::Begun) > begun + 10 || role.tally.get(Count::Key) >= role.keys
        });
        let mut random = Random(Instant::now().elapsed().as_nanos() as u64 + begun);
        thread::sleep(Duration::from_micros(random.below(3_000)));
        panic!("{}", program.exec())
    })
}

/// A worker: becomes itself again, a few times.
pub fn execs(role: &Role) {
    if role.tally.add(Count::Other, 1) <= TIMES {
        becomes(role, command(&std::env::var(crew::ROLE).unwrap()));
    }
}

#[test]
fn a_process_becomes_itself_again() {
    for scene in [of_numbers("1000/365 days"), of_lists("400/365 days; sliding_log: 1000/hour")] {
        let (shared, tally) = (Shared::new("execs"), Tally::new());
        let uri = shared.uri(scene.file);
        let limiter = limiter(scene.policy, &uri);
        let mut process = command(&role("execs", &uri, &tally, scene.policy, scene.keys)).spawn().unwrap();
        assert!(end_of(&mut process).success());
        let told = scene.check(&limiter, &tally, THREADS * TIMES);
        say(format_args!("{}: {told} told by one process, {TIMES} times anew", scene.policy));
    }
}

/// A worker: becomes a program that has nothing to do with any of this.
pub fn becomes_another(role: &Role) {
    let mut program = Command::new("sleep");
    program.arg("50");
    becomes(role, program);
}

#[test]
fn what_a_process_held_is_free_when_it_has_become_another() {
    let scene = of_lists("sliding_log: 4000000000/hour buckets 60");
    let (shared, tally) = (Shared::new("another"), Tally::new());
    let uri = shared.uri(scene.file);
    let limiter = limiter(scene.policy, &uri);
    let mut longest = Duration::ZERO;
    for _ in 0..40 {
        let mut crew = Crew::new(role("becomes_another", &uri, &tally, scene.policy, u64::MAX), &tally, 1);
        let name = format!("/proc/{}/comm", crew.workers[0].id());
        until("that it is another", || std::fs::read_to_string(&name).unwrap() == "sleep\n");
        let begun = Instant::now();
        assert!(limiter.allow(0_u64.to_be_bytes(), 1).unwrap());
        longest = longest.max(begun.elapsed());
        crew.workers[0].kill().unwrap();
        crew.workers.pop().unwrap().wait().unwrap();
        let used = limiter.peek(0_u64.to_be_bytes(), 1).unwrap().used();
        assert!((tally.told(0) + 1..=tally.told(0) + 1 + THREADS).contains(&used), "{used}");
        limiter.reset(0_u64.to_be_bytes()).unwrap();
        tally.clear();
    }
    say(format_args!("what a process held that is another is free after {longest:?} at the latest"));
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}
