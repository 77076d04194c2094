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
