//! Signals beside decisions on Redis: none is lost, and no decision fails for them.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use common::redis_store;
use mirab::{Limiter, Policy};

static SEEN: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    SEEN.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_signal_neither_fails_a_decision_nor_is_lost() {
    // SAFETY: the handler only counts, and does not restart system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as *const () as usize;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
    }
    let policy = Policy::parse("1000000/hour").unwrap();
    let limiter = Limiter::builder(policy)
        .store(redis_store().0)
        .on_store_failure(mirab::OnStoreFailure::Raise)
        .build()
        .unwrap();
    // SAFETY: this thread lives until the end of the scope.
    let (this, stop) = (unsafe { libc::pthread_self() }, AtomicBool::new(false));
    let decided = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // SAFETY: as above.
                unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
                thread::sleep(Duration::from_micros(50));
            }
        });
        let decided = (0..3_000).filter(|_| limiter.allow("k", 1).is_ok_and(|allowed| allowed)).count();
        stop.store(true, Ordering::Relaxed);
        decided
    });
    assert_eq!(decided, 3_000);
    assert!(SEEN.load(Ordering::Relaxed) > 100, "{SEEN:?} signals");
}
