//! Forks at any instant, beside threads that decide: a child has no part in what its parent holds, and keeps
//! nothing of it from others.

use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::shm::Shared;
use crate::common::{Random, say};
use crate::crew::{self, Crew, command, end_of, role};
use crate::hammer::{Scene, hammer_with, of_lists, of_numbers};
use crate::tally::{Count, Tally};
use crate::{Role, limiter, until};

const FORKS: u64 = 200;
const THREADS: usize = 4;

/// Does something in a child, which a signal ends where it hangs.
pub fn fork(child: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child does what is asked here, and ends without what it inherited.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: it has one thread, and no handler for that signal.
            unsafe { libc::alarm(60) };
            let is_done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).is_ok();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!is_done)) }
        }
        process => process,
    }
}

/// Waits for such a child, which must have come to its end.
#[track_caller]
pub fn wait(process: libc::pid_t) {
    let mut status = 0;
    // SAFETY: asks for a child of this process.
    assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
    assert_eq!(status, 0, "a child hung, or failed");
}

/// A worker: forks again and again while its threads decide.
pub fn forks(role: &Role) {
    let (limiter, tally) = (role.limiter(), &role.tally);
    let takes = |most: u64| {
        for _ in 0..most {
            let key = tally.get(Count::Key);
            if key >= role.keys || tally.is_over() {
                return;
            }
            if limiter.allow(key.to_be_bytes(), 1).unwrap() {
                tally.tell(key);
            } else {
                tally.next(key);
            }
        }
    };
    thread::scope(|scope| {
        (0..THREADS).for_each(|_| drop(scope.spawn(|| takes(u64::MAX))));
        let mut random = Random(7);
        for round in 0..FORKS {
            thread::sleep(Duration::from_micros(random.below(500)));
            let child = fork(|| {
                takes(20);
                if round % 8 == 0 {
                    wait(fork(|| takes(20)));
                }
                if round % 40 == 1 {
                    // Another program in the child's place: it ends with all the others.
                    let text = std::env::var(crew::ROLE).unwrap().replacen("forks", "hammers", 1);
                    panic!("{}", command(&text).exec());
                }
                takes(20);
            });
            if round % 40 == 1 {
                thread::sleep(Duration::from_millis(30));
                // SAFETY: a child that was not waited for.
                unsafe { libc::kill(child, libc::SIGKILL) };
                // SAFETY: as above.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
                tally.add(Count::Other, 1);
            } else {
                wait(child);
            }
        }
        tally.set(Count::Stop, 1);
    });
}

fn fork_again_and_again(scene: &Scene) {
    let (shared, tally) = (Shared::new("forked"), Tally::new());
    let uri = shared.uri(scene.file);
    let limiter = limiter(scene.policy, &uri);
    let mut parent = command(&role("forks", &uri, &tally, scene.policy, scene.keys)).spawn().unwrap();
    assert!(end_of(&mut parent).success());
    let told = scene.check(&limiter, &tally, tally.get(Count::Other));
    say(format_args!("{}: {told} told by parent and children", scene.policy));
    assert!(told > 0);
}

#[test]
fn a_parent_of_four_threads_and_all_that_it_forks_are_exact() {
    fork_again_and_again(&of_numbers("1000/365 days"));
    fork_again_and_again(&of_lists("400/365 days; sliding_log: 1000/hour"));
}

/// A worker: leaves a child that does nothing, and hammers on.
pub fn leaves_a_child(role: &Role) {
    let (limiter, stop) = (role.limiter(), AtomicBool::new(false));
    let child = fork(|| thread::sleep(Duration::from_secs(50)));
    role.tally.set(Count::Process, child as u64);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(limiter.acquire("other", 1).unwrap());
            }
        });
        hammer_with(&limiter, role);
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_a_dead_parent_holds_is_free_though_its_child_lives() {
    let scene = of_lists("sliding_log: 4000000000/hour buckets 60");
    let (shared, tally) = (Shared::new("orphan"), Tally::new());
    let uri = shared.uri(scene.file);
    let limiter = limiter(scene.policy, &uri);
    let mut longest = Duration::ZERO;
    for _ in 0..40 {
        let mut crew = Crew::new(role("leaves_a_child", &uri, &tally, scene.policy, u64::MAX), &tally, 1);
        until("the parent's first decisions", || tally.told(0) > 10);
        thread::sleep(Duration::from_micros(crew.random.below(1_000)));
        let mut parent = crew.workers.pop().unwrap();
        parent.kill().unwrap();
        parent.wait().unwrap();
        let child = tally.get(Count::Process) as libc::pid_t;
        // SAFETY: asks whether that child lives, which only this test ends.
        assert_eq!(unsafe { libc::kill(child, 0) }, 0);
        let begun = Instant::now();
        assert!(limiter.allow(0_u64.to_be_bytes(), 1).unwrap());
        longest = longest.max(begun.elapsed());
        // SAFETY: as above.
        unsafe { libc::kill(child, libc::SIGKILL) };
        let used = limiter.peek(0_u64.to_be_bytes(), 1).unwrap().used();
        assert!((tally.told(0) + 1..=tally.told(0) + 2).contains(&used), "{used}");
        limiter.reset(0_u64.to_be_bytes()).unwrap();
        tally.clear();
    }
    say(format_args!("what a dead parent holds is free after {longest:?} at the latest"));
    assert!(longest < Duration::from_secs(5), "{longest:?}");
}
