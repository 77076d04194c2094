//! What is made once in a process, by whoever needs it first.
//!
//! Those who need it at the same time each make it, and all take what the first one made: nobody waits. A child
//! that is forked meanwhile has nobody who would finish what another thread had begun.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

pub(crate) struct Once<T: Send + Sync>(AtomicPtr<T>);

impl<T: Send + Sync> Once<T> {
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline]
    pub fn get_or_make(&'static self, make: impl FnOnce() -> T) -> &'static T {
        let mut made = self.0.load(Ordering::Acquire);
        if made.is_null() {
            made = self.put(make());
        }
        // SAFETY: it came out of a box, and is neither changed nor freed.
        unsafe { &*made }
    }

    #[cold]
    fn put(&self, value: T) -> *mut T {
        let made = Box::into_raw(Box::new(value));
        match self.0.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(first) => {
                // SAFETY: it came out of a box a moment ago, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                first
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn all_take_what_the_first_one_made() {
        static ONCE: Once<String> = Once::new();
        let all = &Barrier::new(8);
        let take = move |number: usize| {
            all.wait();
            ptr::from_ref(ONCE.get_or_make(|| number.to_string())).addr()
        };
        let taken: Vec<usize> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || take(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(taken.iter().all(|&one| one == taken[0]));
        assert_eq!(ONCE.get_or_make(String::new).len(), 1);
    }
}
