//! Chains: the slots that one head leads to, under a lock of their own, so that who takes from one key meets
//! nobody who takes from another.
//!
//! A head is one word: the first slot, who holds the chain, and a version that is new each time it is given
//! back. Whoever holds the chain alone changes a state by one word at a time, each time whole; whoever changes more,
//! or what lies in the chain, holds the part too, whose journal undoes it.

use super::part::{Guard, Holder, Part};
use super::waiting::Waiting;
use super::word::Word;
use crate::Result;

const NEXT_BITS: u32 = 32;
const HOLDER_BITS: u32 = 12;

/// The word of a link without what is said of the chain.
pub(super) const NEXT: u64 = (1 << NEXT_BITS) - 1;

/// Who holds a chain; 0 for nobody.
#[inline]
pub(super) fn holder(head: u64) -> u64 {
    head >> NEXT_BITS & ((1 << HOLDER_BITS) - 1)
}

/// The head while it is held.
#[inline]
pub(super) fn held(head: u64, own: u64) -> u64 {
    head | own << NEXT_BITS
}

/// The head of a new version, held by nobody.
#[inline]
pub(super) fn released(head: u64) -> u64 {
    let version = (head >> (NEXT_BITS + HOLDER_BITS)).wrapping_add(1);
    version << (NEXT_BITS + HOLDER_BITS) | head & NEXT
}

impl Part {
    /// The chain that a fingerprint names.
    #[inline]
    pub fn home(&self, fingerprint: u64) -> usize {
        ((u128::from(fingerprint) * self.heads.len() as u128) >> 64) as usize
    }

    #[inline]
    pub fn head(&self, home: usize) -> &'static Word {
        &self.heads[home]
    }

    /// Gives a chain back that is held.
    #[inline]
    pub fn release(&self, home: usize) {
        let head = self.head(home);
        head.set(released(head.get()));
    }

    /// Gives back what the dead hold, and who is meant.
    pub fn release_dead(&self, is_dead: impl Fn(u64) -> bool) {
        for head in self.heads {
            let word = head.get_first();
            if holder(word) != 0 && is_dead(holder(word)) {
                head.exchange(word, released(word));
            }
        }
    }
}

/// How often a chain is tried while its part is held.
const TRIES: u32 = 40;

impl Part {
    /// Waits until nobody holds a chain, or who does is dead. Whoever waits holds nothing that others need.
    ///
    /// # Errors
    /// As [`Waiting::turn`].
    pub fn wait_for(&self, home: usize, who: Holder<'_>) -> Result<()> {
        let head = self.head(home);
        let mut waiting = Waiting::default();
        loop {
            let word = head.get_first();
            if holder(word) == 0 || waiting.turn(head, word, holder(word), who)? {
                return Ok(());
            }
        }
    }
}

impl Guard<'_> {
    /// Holds a chain until this step is closed; false where somebody else does, who lives.
    pub fn hold(&mut self, home: usize, who: Holder<'_>) -> bool {
        let is_held = self.chains.contains(&home) || self.hold_chain(home, who);
        if is_held && !self.chains.contains(&home) {
            self.chains.push(home);
        }
        is_held
    }

    /// Does something with a chain while it is held; none where somebody else holds it.
    pub fn holding<T>(&self, home: usize, who: Holder<'_>, act: impl FnOnce() -> T) -> Option<T> {
        if self.chains.contains(&home) {
            return Some(act());
        }
        self.hold_chain(home, who).then(|| {
            let done = act();
            self.part.release(home);
            done
        })
    }

    fn hold_chain(&self, home: usize, who: Holder<'_>) -> bool {
        let head = self.part.head(home);
        for _ in 0..TRIES {
            let word = head.get_first();
            if holder(word) == 0 && head.exchange(word, held(word, who.own)) {
                return true;
            }
            std::hint::spin_loop();
        }
        let word = head.get_first();
        // What a dead one held was whole: more than a word at a time is changed by who holds the part.
        holder(word) != 0
            && !who.owners.lives(holder(word))
            && head.exchange(word, held(released(word), who.own))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::super::settings::Settings;
    use super::super::slot::fingerprint;
    use super::super::{ShmStore, file};
    use super::*;
    use crate::ErrorKind;
    use crate::clock::Time;
    use crate::policy::Policy;
    use crate::store::charge::{Mode, Request};

    /// Or all who come later would begin to wait anew, one after the other.
    #[test]
    fn who_waits_for_a_chain_holds_no_part() {
        let [random, _] = crate::store::bucket::random_seed();
        let rest = format!("unit-waits-{random:x}?max_keys=8&log_entries=4&timeout_ms=300");
        let settings = Settings::parse(&rest).unwrap();
        let path = settings.path.clone();
        let store = ShmStore::over(settings.clone(), file::open(&settings).unwrap());
        let policy = Policy::parse("3/hour").unwrap();
        let request = Request { buckets: policy.buckets(), key: b"key", cost: 1 };
        let decide = || store.decide_request(&request, Mode::Acquire, Time::STORE, |it| it.admitted);
        assert!(decide().unwrap());
        let mapped = store.mapped();
        let part = &mapped.parts[0];
        let own = mapped.holder(Duration::ZERO).unwrap().own;
        let at = fingerprint(policy.buckets()[0].with_key(mapped.key(b"key")), Time::STORE);
        let head = part.head(part.home(at));
        assert!(head.exchange(head.get(), held(head.get(), own)));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let decided = decide();
                is_over.store(true, Ordering::Relaxed);
                decided
            });
            thread::sleep(Duration::from_millis(50));
            let mut free = 0;
            while !is_over.load(Ordering::Relaxed) {
                free += u64::from(part.lock_now(own).is_some());
            }
            assert!(free > 1_000, "{free}");
            assert_eq!(waits.join().unwrap().unwrap_err().kind(), ErrorKind::StoreTimeout);
        });
        part.release(part.home(at));
        assert!(decide().unwrap());
        std::fs::remove_file(path).unwrap();
    }
}
