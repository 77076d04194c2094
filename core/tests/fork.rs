//! A child that is forked while other threads decide can decide too, at once.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::redis_store;
use mirab::{Limiter, Policy, Store};

fn fork_beside_busy_threads(store: Store) {
    let policy = Policy::parse("1000000/second").unwrap();
    let limiter =
        Limiter::builder(policy).store(store).on_store_failure(mirab::OnStoreFailure::Raise).build().unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in 0..3 {
            let (limiter, stop) = (&limiter, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    (0..64_u64)
                        .for_each(|key| assert!(limiter.allow((key * 3 + worker).to_be_bytes(), 1).is_ok()));
                }
            });
        }
        let failed = (0..100).find(|_| {
            // SAFETY: the child only decides and exits, without unwinding or running what it inherited.
            match unsafe { libc::fork() } {
                0 => {
                    let decided = (0..256_u64).all(|key| limiter.allow(key.to_be_bytes(), 1).is_ok());
                    // SAFETY: ends the child at once.
                    unsafe { libc::_exit(i32::from(!decided)) }
                }
                child => limiter.allow("parent", 1).is_err() || wait(child) != Some(0),
            }
        });
        stop.store(true, Ordering::Relaxed);
        assert_eq!(failed, None, "the child hung, or one of the two could not decide");
    });
}

/// The exit code of the child; none when it has to be killed.
fn wait(child: i32) -> Option<i32> {
    let begun = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: asks for a child of ours.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        }
        if begun.elapsed() > Duration::from_secs(15) {
            // SAFETY: as above.
            unsafe {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, &raw mut status, 0);
            }
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn on_memory() {
    fork_beside_busy_threads(Store::open("memory:").unwrap());
}

#[test]
fn on_redis() {
    fork_beside_busy_threads(redis_store().0);
}

#[test]
fn while_another_thread_decides_for_the_first_time() {
    for round in 0..200 {
        let policy = Policy::parse("1000000/second").unwrap();
        let limiter = Limiter::builder(policy).store(redis_store().0).build().unwrap();
        // It connects; what comes next is begun by the first decision.
        assert!(limiter.health().unwrap().ok);
        thread::scope(|scope| {
            let first = scope.spawn(|| limiter.allow("k", 1).is_ok());
            // Somewhere within that decision.
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_micros(round % 100 * 3) {}
            // SAFETY: the child only decides and exits, without unwinding or running what it inherited.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let decided = limiter.allow("k", 1).is_ok();
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(i32::from(!decided)) }
            }
            assert_eq!(wait(child), Some(0), "round {round}");
            assert!(first.join().unwrap());
        });
    }
}

/// What a process makes once, it makes with its first decisions: a child that is forked just then makes it
/// anew.
#[test]
fn in_a_process_that_has_just_begun() {
    if let Ok(after) = std::env::var("FORKS_AFTER_US") {
        return forks_at_once(Duration::from_micros(after.parse().unwrap()));
    }
    for round in 0..150_u64 {
        let mut process = std::process::Command::new(std::env::current_exe().unwrap());
        process.args(["--exact", "in_a_process_that_has_just_begun", "--quiet"]);
        let done = process.env("FORKS_AFTER_US", (round * 20 % 1_500).to_string()).output().unwrap();
        assert!(done.status.success(), "round {round}: {}", String::from_utf8_lossy(&done.stdout));
    }
}

/// What such a process does.
fn forks_at_once(after: Duration) {
    let limiters = [Store::open("memory:").unwrap(), redis_store().0].map(|store| {
        let policy = Policy::parse("1000000/second").unwrap();
        Limiter::builder(policy).store(store).on_store_failure(mirab::OnStoreFailure::Raise).build().unwrap()
    });
    let begun = Instant::now();
    thread::scope(|scope| {
        for limiter in &limiters {
            scope.spawn(move || {
                while begun.elapsed() < Duration::from_millis(3) {
                    assert!(limiter.allow("k", 1).is_ok());
                }
            });
        }
        while begun.elapsed() < after {}
        // SAFETY: the child only decides and exits, without unwinding or running what it inherited.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let until = Instant::now() + Duration::from_millis(3);
            let mut decided = true;
            while Instant::now() < until {
                decided &= limiters.iter().all(|limiter| limiter.allow("k", 1).is_ok());
            }
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(!decided)) }
        }
        assert_eq!(wait(child), Some(0));
    });
}

/// Stores by name, zones by name: a child finds them, though another thread was looking just then.
#[test]
fn while_another_thread_looks_up_names() {
    let look_up = |round: u64| {
        let zone =
            ["Africa/Cairo", "America/New_York", "Asia/Tashkent", "Europe/Paris"][(round % 4) as usize];
        Policy::parse(&format!("fixed_window: 5/day in {zone}")).unwrap();
        Store::open(&format!("memory:name{}", round % 8)).unwrap();
        Store::open(&format!("redis://127.0.0.1:1/?prefix=p{}", round % 8)).unwrap();
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in 0..2 {
            let (look_up, stop) = (&look_up, &stop);
            scope.spawn(move || {
                let mut round = worker;
                while !stop.load(Ordering::Relaxed) {
                    look_up(round);
                    round += 1;
                }
            });
        }
        let failed = (0..200_u64).find(|&round| {
            // SAFETY: the child only looks up and exits, without unwinding or running what it inherited.
            let child = unsafe { libc::fork() };
            if child == 0 {
                (round..round + 8).for_each(look_up);
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(0) }
            }
            wait(child) != Some(0)
        });
        stop.store(true, Ordering::Relaxed);
        assert_eq!(failed, None, "the child hung");
    });
}
