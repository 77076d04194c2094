//! Ends that are no kill: a panic in a thread, an exit beside threads that decide, a fault of memory. Nobody
//! else hangs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::shm::Shared;
use crate::common::{Random, say};
use crate::crew::{command, end_of, role};
use crate::hammer::{Scene, hammer_with, of_lists, of_numbers};
use crate::tally::{Count, Tally};
use crate::{Role, limiter, until};

const THREADS: u64 = 3;
const ROUNDS: u64 = 15;

/// Hammers with threads, until something ends the process, or one of them.
fn beside_threads(role: &Role, end: impl FnOnce()) {
    let limiter = role.limiter();
    thread::scope(|scope| {
        (0..THREADS).for_each(|_| drop(scope.spawn(|| hammer_with(&limiter, role))));
        let begun = role.tally.get(Count::Begun);
        until("its own first decisions", || {
            role.tally.get(Count::Begun) > begun + 10 || role.tally.get(Count::Key) >= role.keys
        });
        let mut random = Random(u64::from(std::process::id()));
        thread::sleep(Duration::from_micros(random.below(2_000)));
        end();
    });
}

/// A worker: some of its threads panic, right after a decision, and the others go on.
pub fn panics(role: &Role) {
    let (limiter, is_enough) = (role.limiter(), AtomicBool::new(false));
    beside_threads(role, || {
        thread::scope(|scope| {
            for round in 0..50_u64 {
                let panics = scope.spawn(|| {
                    // The same in each, and a panic of the caller's own while it holds the answer.
                    let decision = limiter.acquire("panics", 1).unwrap();
                    std::panic::resume_unwind(Box::new(decision.allowed()));
                });
                assert!(panics.join().is_err(), "{round}");
            }
            is_enough.store(true, Ordering::Relaxed);
        });
        role.tally.set(Count::Stop, 1);
    });
    assert!(is_enough.load(Ordering::Relaxed));
}

/// A worker: ends in good order, as it thinks.
pub fn exits(role: &Role) {
    beside_threads(role, || std::process::exit(0));
}

/// A worker: touches memory that is not there.
pub fn faults(role: &Role) {
    // SAFETY: says that nothing is to be written of its end.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, rlim_max: 0 }) };
    beside_threads(role, || {
        // SAFETY: a page that nobody may touch, and nobody knows.
        unsafe {
            let (nobody, how) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), 4_096, nobody, how, -1, 0).cast::<u8>().write_volatile(1);
        }
    });
}

fn ends(name: &str, scene: &Scene, lost: u64) {
    let (shared, tally) = (Shared::new("ends"), Tally::new());
    let uri = shared.uri(scene.file);
    let limiter = limiter(scene.policy, &uri);
    let (mut told, mut longest) = (0, Duration::ZERO);
    for _ in 0..ROUNDS {
        let mut worker = command(&role(name, &uri, &tally, scene.policy, scene.keys));
        let mut worker = worker.stderr(std::process::Stdio::null()).spawn().unwrap();
        end_of(&mut worker);
        let begun = Instant::now();
        limiter.allow("panics", 1).unwrap();
        limiter.reset("panics").unwrap();
        told += scene.check(&limiter, &tally, lost);
        longest = longest.max(begun.elapsed());
        scene.clear(&limiter, &tally);
    }
    say(format_args!("{name}: {told} told, after the end all was had within {longest:?}"));
    assert!(told > 0);
    assert!(longest < Duration::from_secs(10), "{longest:?}");
}

#[test]
fn a_panic_of_a_thread() {
    ends("panics", &of_numbers("1000/365 days"), 0);
}

#[test]
fn an_exit_beside_threads_that_decide() {
    ends("exits", &of_numbers("1000/365 days"), THREADS);
    ends("exits", &of_lists("400/365 days; sliding_log: 1000/hour"), THREADS);
}

#[test]
fn a_fault_beside_threads_that_decide() {
    ends("faults", &of_numbers("1000/365 days"), THREADS);
    ends("faults", &of_lists("400/365 days; sliding_log: 1000/hour"), THREADS);
}
