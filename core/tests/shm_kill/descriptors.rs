//! Who opens the store's file itself and closes it again loses the kernel's lock that says that it lives: it is
//! still nobody's to take from. And owners who come and go, one after the other, so that numbers are used again.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::say;
use crate::common::shm::Shared;
use crate::crew::{Crew, command, end_of, role, signal};
use crate::forked::{fork, wait};
use crate::hammer::{Scene, hammer_with, of_lists, of_numbers};
use crate::tally::{Count, Tally};
use crate::{Role, limiter, share, until};

/// A worker: hammers while it opens and closes the file all the time.
pub fn opens_and_closes(role: &Role) {
    let path = role.uri.trim_start_matches("shm://").split('?').next().unwrap().to_owned();
    let (limiter, stop) = (role.limiter(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(File::open(&path).unwrap());
            }
        });
        hammer_with(&limiter, role);
        stop.store(true, Ordering::Relaxed);
    });
}

/// A worker: forks many children at once, again and again, which all come to the store at the same instant, while each
/// opens and closes the file.
pub fn come_at_once(role: &Role) {
    let path = role.uri.trim_start_matches("shm://").split('?').next().unwrap().to_owned();
    let limiter = role.limiter();
    for key in 0..role.keys {
        let begun = Instant::now();
        let children = (0..16).map(|_| {
            fork(|| {
                thread::scope(|scope| {
                    let closes = scope.spawn(|| {
                        while begun.elapsed() < Duration::from_millis(15) {
                            drop(File::open(&path).unwrap());
                        }
                    });
                    while begun.elapsed() < Duration::from_millis(8) {
                        thread::yield_now();
                    }
                    while limiter.allow(key.to_be_bytes(), 1).unwrap() {
                        role.tally.tell(key);
                    }
                    closes.join().unwrap();
                });
            })
        });
        children.collect::<Vec<_>>().into_iter().for_each(wait);
        role.tally.next(key);
    }
}

#[test]
fn many_who_come_at_once_have_a_place_each() {
    let scene = of_lists("400/365 days; sliding_log: 1000/hour");
    let (shared, tally) = (Shared::new("at-once"), Tally::new());
    let uri = shared.uri(scene.file);
    let limiter = limiter(scene.policy, &uri);
    for _ in 0..3 {
        let role = role("come_at_once", &uri, &tally, scene.policy, scene.keys);
        assert!(end_of(&mut command(&role).spawn().unwrap()).success());
        assert_eq!(scene.check(&limiter, &tally, 0), scene.keys * scene.each);
        scene.clear(&limiter, &tally);
    }
}

/// A worker: opens and closes it too, but its first thread ends at once, and the others are all that is left of it.
#[cfg(target_os = "linux")]
pub fn without_its_first(role: &Role) {
    extern "C" fn ends(_: libc::c_int) {
        // SAFETY: ends this thread alone; what others borrow of it stays where it is.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
    // SAFETY: the handler returns nowhere, and the signal is for the first thread, which waits for this one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ends as *const () as usize;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
        let process = libc::getpid();
        libc::syscall(libc::SYS_tgkill, process, process, libc::SIGUSR1);
    }
    let is_well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| opens_and_closes(role))).is_ok();
    // SAFETY: ends the process, where nobody waits any more.
    unsafe { libc::_exit(i32::from(!is_well)) }
}

#[test]
fn nothing_is_taken_from_those_who_close_a_descriptor_of_the_file() {
    of_numbers("1000/365 days").play("opens_and_closes", share(10));
    of_lists("400/365 days; sliding_log: 1000/hour").play("opens_and_closes", share(10));
}

/// Nobody is killed here, so whoever comes takes no dead owner's place: each must find one of its own, and leave
/// the others theirs.
#[test]
fn who_comes_takes_no_place_of_one_that_lives() {
    comes_beside("opens_and_closes");
    #[cfg(target_os = "linux")]
    comes_beside("without_its_first");
}

fn comes_beside(name: &str) {
    let scene = of_lists("sliding_log: 400/hour");
    let (shared, tally) = (Shared::new("places"), Tally::new());
    let uri = shared.uri(scene.file);
    let limiter = limiter(scene.policy, &uri);
    for _ in 0..10 {
        let role = role(name, &uri, &tally, scene.policy, scene.keys);
        let mut crew = Crew::new(role, &tally, 2);
        for _ in 0..4 {
            // One that is stopped while it holds something, others that come then.
            let place = crew.random.below(crew.workers.len() as u64) as usize;
            signal(&crew.workers[place], libc::SIGSTOP);
            crew.start();
            crew.start();
            thread::sleep(Duration::from_millis(20));
            signal(&crew.workers[place], libc::SIGCONT);
        }
        assert_eq!(crew.end(), 0);
        scene.check(&limiter, &tally, 0);
        scene.clear(&limiter, &tally);
    }
}

fn three_hundred(scene: &Scene) {
    let (shared, tally) = (Shared::new("short"), Tally::new());
    let uri = shared.uri(scene.file);
    let limiter = limiter(scene.policy, &uri);
    let (mut told, mut killed, mut lost) = (0, 0, 0);
    while killed < 150 {
        let before = tally.get(Count::Begun);
        let mut worker = command(&role("hammers", &uri, &tally, scene.policy, scene.keys)).spawn().unwrap();
        until("a short process's first decision", || tally.get(Count::Begun) != before);
        thread::sleep(Duration::from_micros(killed * 37 % 2_000));
        worker.kill().unwrap();
        end_of(&mut worker);
        (killed, lost) = (killed + 1, lost + 1);
        if tally.get(Count::Key) >= scene.keys {
            told += scene.check(&limiter, &tally, lost);
            scene.clear(&limiter, &tally);
            lost = 0;
        }
    }
    told += scene.check(&limiter, &tally, lost);
    say(format_args!("{}: {told} told by {killed} short processes", scene.policy));
}

#[test]
fn short_processes_one_after_the_other() {
    three_hundred(&of_numbers("1000/365 days"));
    three_hundred(&of_lists("400/365 days; sliding_log: 1000/hour; concurrency: 500 for 1h"));
}
