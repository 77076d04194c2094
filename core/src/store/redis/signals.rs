//! Signals wait while a thread waits for the server: an interrupted read would lose an answer whose
//! charge is made.

use std::mem::MaybeUninit;

/// Holds back this thread's signals until it is dropped; the host sees them then. Faults are not held.
pub(super) struct Held {
    before: libc::sigset_t,
}

impl Held {
    pub fn new() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are initialised by the calls, which cannot fail with these arguments.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for fault in
                [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT]
            {
                libc::sigdelset(all.as_mut_ptr(), fault);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            Self { before: before.assume_init() }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: it is the set that was in force before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}
