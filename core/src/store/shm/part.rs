//! A part of the file: states under one lock.
//!
//! The lock is a word: a version, and the number of who holds it. It is taken by one exchange and given
//! back by one store, which also makes the version a new one. Under it the chains of states have locks of
//! their own, see [`chain`](super::chain).
//!
//! Whoever holds it may end at any instruction. So before a word changes, its old value goes into the
//! part's journal; the step is whole when the journal is closed. Who finds the lock with a dead holder
//! takes it from him, puts back what the journal says, and what follows from the rest is made anew. What
//! that step had taken is as if nobody had asked; its answer was never told.

use std::time::Duration;

use smallvec::SmallVec;

use super::arena::Block;
use super::layout::{CONTROL_WORDS, Geometry, JOURNAL, SLOT_WORDS, UNIT_WORDS};
use super::lists::corrupt;
use super::owner::Owners;
use super::slot::FREE;
use super::trouble::Stuck;
use super::waiting::Waiting;
use super::word::Word;
use crate::{Error, Result};

/// What the words of a part's head are.
#[derive(Clone, Copy)]
pub(super) enum Control {
    Lock,
    /// The first free slot, one more than its place; 0 for none.
    Free,
    Used,
    /// How many blocks of keys there are, those that are over too.
    Blocks,
    Evicted,
    /// Where the next search for something to evict begins, and how many were since all was swept.
    Cursor,
    SinceSweep,
    /// How many words the journal holds; 0 when it is closed.
    Journal,
    /// In a step over several parts: the part at which it is closed (one more than its place) and the
    /// version at which that was locked; there also that version, while the step is not closed.
    Lead,
    LeadVersion,
    Open,
}

/// The bits of the lock that say who holds it.
const HOLDER: u32 = 16;

pub(super) type Slot = [Word; SLOT_WORDS];
pub(super) type Unit = [Word; UNIT_WORDS];

#[derive(Clone, Copy)]
pub(super) struct Part {
    pub index: usize,
    pub all: &'static [Word],
    control: &'static [Word; CONTROL_WORDS],
    pub journal: &'static [[Word; 2]],
    pub heads: &'static [Word],
    pub slots: &'static [Slot],
    pub marks: &'static [Word],
    pub units: &'static [Unit],
}

/// The part while this process holds it.
pub(super) struct Guard<'a> {
    pub part: &'a Part,
    pub version: u64,
    pub own: u64,
    /// How many words the journal holds.
    pub written: usize,
    /// The chains that are held as well.
    pub chains: SmallVec<[usize; 4]>,
    /// What is free once the step is whole.
    pub freed: Freed,
    /// How much was given out that no chain leads to yet.
    pub loose: usize,
}

#[derive(Default)]
pub(super) struct Freed {
    pub slots: SmallVec<[usize; 2]>,
    pub blocks: SmallVec<[Block; 2]>,
}

/// Why a lock was not had.
pub(super) enum Unheld {
    /// Its holder died in a step over several parts: this one must be settled first.
    Settle(usize),
    Failed(Error),
}

/// Whom it takes to hold a part, and to have it from a holder that died.
#[derive(Clone, Copy)]
pub(super) struct Holder<'a> {
    pub own: u64,
    pub owners: &'a Owners,
    pub parts: &'a [Part],
    pub stuck: &'a Stuck,
    pub timeout: Duration,
}

impl Part {
    /// The part of that number, of a file's words; none where they are too few.
    pub fn new(index: usize, geometry: &Geometry, words: &'static [Word]) -> Option<Self> {
        let first = geometry.first_part() + index * geometry.part_words();
        let all = words.get(first..first + geometry.part_words())?;
        let (control, rest) = all.split_first_chunk()?;
        let (journal, rest) = rest.split_at_checked(2 * JOURNAL)?;
        let (heads, rest) = rest.split_at_checked(geometry.heads.next_multiple_of(8))?;
        let (slots, rest) = rest.split_at_checked(geometry.slots * SLOT_WORDS)?;
        let (marks, rest) = rest.split_at_checked(geometry.marks().next_multiple_of(8))?;
        let units = rest.get(..geometry.units() * UNIT_WORDS)?;
        Some(Self {
            index,
            all,
            control,
            journal: journal.as_chunks().0,
            heads: heads.get(..geometry.heads)?,
            slots: slots.as_chunks().0,
            marks: marks.get(..geometry.marks())?,
            units: units.as_chunks().0,
        })
    }

    /// Makes all of it free, before anybody else sees it. Of two slots on a cache line the second comes only
    /// after the first of all others: what processes take from different keys mostly lies on different ones.
    pub fn begin(&self) {
        let mut free = 0;
        for first in [1, 0] {
            for slot in (first..self.slots.len()).step_by(2).rev() {
                self.slots[slot][0].set(FREE);
                self.slots[slot][3].set(free);
                free = slot as u64 + 1;
            }
        }
        self.control(Control::Free).set(free);
        // No version is zero: that is what a closed step says.
        self.control(Control::Lock).set(next(0));
    }

    #[inline]
    pub fn control(&self, which: Control) -> &'static Word {
        &self.control[which as usize]
    }

    pub fn lock_word(&self) -> u64 {
        self.control(Control::Lock).get_first()
    }

    pub fn evicted(&self) -> u64 {
        self.control(Control::Evicted).get()
    }

    /// The version, while nobody holds it.
    #[inline]
    fn version(&self) -> Option<u64> {
        let lock = self.lock_word();
        (holder(lock) == 0).then_some(lock)
    }

    /// The lock, where nobody has held it since that version was read.
    #[inline]
    fn lock_at(&self, version: u64, own: u64) -> Option<Guard<'_>> {
        self.control(Control::Lock).exchange(version, version | own).then(|| self.guard(version, own))
    }

    /// The lock, where nobody holds it.
    #[inline]
    pub fn lock_now(&self, own: u64) -> Option<Guard<'_>> {
        self.version().and_then(|version| self.lock_at(version, own))
    }

    #[inline]
    pub fn guard(&self, version: u64, own: u64) -> Guard<'_> {
        Guard {
            part: self,
            version,
            own,
            written: 0,
            chains: SmallVec::new(),
            freed: Freed::default(),
            loose: 0,
        }
    }

    /// The lock. Who holds no other may settle what a dead holder left over several parts.
    pub fn lock(&self, who: Holder<'_>) -> Result<Guard<'_>> {
        loop {
            match self.try_lock(who) {
                Ok(guard) => return Ok(guard),
                Err(Unheld::Settle(lead)) => {
                    if let Some(lead) = who.parts.get(lead) {
                        drop(lead.lock(who)?);
                    }
                }
                Err(Unheld::Failed(error)) => return Err(error),
            }
        }
    }

    #[inline]
    pub fn try_lock(&self, who: Holder<'_>) -> std::result::Result<Guard<'_>, Unheld> {
        match self.lock_now(who.own) {
            Some(guard) => Ok(guard),
            None => self.wait(who),
        }
    }

    #[cold]
    fn wait(&self, who: Holder<'_>) -> std::result::Result<Guard<'_>, Unheld> {
        let mut waiting = Waiting::default();
        loop {
            let lock = self.lock_word();
            if holder(lock) == 0 {
                if let Some(guard) = self.lock_at(lock, who.own) {
                    return Ok(guard);
                }
            } else if waiting
                .turn(self.control(Control::Lock), lock, holder(lock), who)
                .map_err(Unheld::Failed)?
                && let Some(guard) = self.take_from_the_dead(lock, who)?
            {
                return Ok(guard);
            }
        }
    }
}

impl Guard<'_> {
    /// Changes a word as a part of this step.
    pub fn put(&mut self, word: &Word, value: u64) -> Result<()> {
        let old = word.get();
        if old == value {
            return Ok(());
        }
        let Some(entry) = self.part.journal.get(self.written) else {
            return Err(Error::unsupported(format!("a step that changes more than {JOURNAL} words")));
        };
        entry[0].set(self.place(word));
        entry[1].set(old);
        self.written += 1;
        self.part.control(Control::Journal).set(self.written as u64);
        word.set(value);
        Ok(())
    }

    fn place(&self, word: &Word) -> u64 {
        let first = self.part.all.as_ptr();
        ((std::ptr::from_ref(word) as usize).wrapping_sub(first as usize) / size_of::<Word>()) as u64
    }

    /// Closes the step: now it has happened.
    #[inline]
    pub fn close(&mut self) {
        if self.written > 0 {
            self.part.control(Control::Journal).set(0);
            self.written = 0;
        }
        self.loose = 0;
        self.chains.drain(..).for_each(|home| self.part.release(home));
        let Freed { slots, blocks } = &mut self.freed;
        if !slots.is_empty() || !blocks.is_empty() {
            slots.drain(..).for_each(|slot| self.part.free(slot));
            blocks.drain(..).for_each(|block| self.part.give_back(block));
        }
    }

    /// The error of a part that contradicts itself, which is made anew when it is given back.
    #[cold]
    pub fn damaged(&mut self) -> Error {
        self.loose += 1;
        corrupt()
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        #[cfg(test)]
        if super::turns::is_dead() {
            return;
        }
        if self.written > 0 || self.loose > 0 {
            self.put_back();
        }
        self.chains.drain(..).for_each(|home| self.part.release(home));
        self.part.control(Control::Lock).set(next(self.version));
    }
}

#[inline]
pub(super) fn holder(lock: u64) -> u64 {
    lock & ((1 << HOLDER) - 1)
}

/// The next version, held by nobody.
#[inline]
pub(super) fn next(lock: u64) -> u64 {
    ((lock >> HOLDER) + 1) << HOLDER
}
