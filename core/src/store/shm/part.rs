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
use super::kept::corrupt;
use super::layout::{CONTROL_WORDS, Geometry, JOURNAL, SLOT_WORDS, UNIT_WORDS};
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
    journal: &'static [[Word; 2]],
    pub heads: &'static [Word],
    pub slots: &'static [Slot],
    pub marks: &'static [Word],
    pub units: &'static [Unit],
}

/// The part while this process holds it.
pub(super) struct Guard<'a> {
    pub part: &'a Part,
    version: u64,
    own: u64,
    written: usize,
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
    fn guard(&self, version: u64, own: u64) -> Guard<'_> {
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

    /// The lock of a holder that is dead, made whole; none where somebody else was first.
    #[cold]
    pub fn take_from_the_dead(
        &self,
        lock: u64,
        who: Holder<'_>,
    ) -> std::result::Result<Option<Guard<'_>>, Unheld> {
        let lead = self.control(Control::Lead).get();
        let lead = usize::try_from(lead).ok().and_then(|lead| lead.checked_sub(1));
        let lead = lead.and_then(|lead| who.parts.get(lead)).filter(|lead| lead.index != self.index);
        let mut is_whole = false;
        if let Some(lead) = lead {
            // Until its step is settled the first part is held, and its own first.
            let is_held = holder(lead.lock_word()) != 0;
            let is_first = is_held && lead.control(Control::Lead).get_first() == lead.index as u64 + 1;
            let is_open = lead.control(Control::Open).get_first() == self.control(Control::LeadVersion).get();
            if is_open && is_first {
                return Err(Unheld::Settle(lead.index));
            }
            is_whole = !is_open;
        }
        let version = next(lock);
        if !self.control(Control::Lock).exchange(lock, version | who.own) {
            return Ok(None);
        }
        let mut guard = self.guard(version, who.own);
        if is_whole {
            self.control(Control::Journal).set(0);
        }
        guard.recover(holder(lock), who);
        Ok(Some(guard))
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

    /// Says that this part is one of several, and where their step is closed.
    pub fn join(&self, lead: &Guard<'_>) {
        if lead.part.index == self.part.index {
            self.part.control(Control::Open).set(self.version);
        }
        self.part.control(Control::LeadVersion).set(lead.version);
        self.part.control(Control::Lead).set(lead.part.index as u64 + 1);
    }

    /// Closes the step of all parts that have joined this one.
    pub fn close_all(&self) {
        self.part.control(Control::Open).set(0);
    }

    pub fn leave(&self) {
        self.part.control(Control::Lead).set(0);
    }

    /// The error of a part that contradicts itself, which is made anew when it is given back.
    #[cold]
    pub fn damaged(&mut self) -> Error {
        self.loose += 1;
        corrupt()
    }

    /// Puts back what an unfinished step of a dead holder changed, here and in the parts that had
    /// joined.
    fn recover(&mut self, dead: u64, who: Holder<'_>) {
        let is_dead = |number| number == dead || !who.owners.lives(number);
        let open = self.part.control(Control::Open).get();
        let is_lead = self.part.control(Control::Lead).get() == self.part.index as u64 + 1;
        if is_lead && open != 0 {
            for other in who.parts.iter().filter(|other| other.index != self.part.index) {
                let lock = other.control(Control::Lock).get_first();
                if other.control(Control::Lead).get() == self.part.index as u64 + 1
                    && other.control(Control::LeadVersion).get() == open
                    && holder(lock) != 0
                    && other.control(Control::Lock).exchange(lock, next(lock) | self.own)
                {
                    let mut guard = other.guard(next(lock), self.own);
                    guard.put_back();
                    guard.leave();
                    other.release_dead(|number| is_dead(number) || number == holder(lock));
                }
            }
        } else if is_lead {
            // It was closed for all of them, here too.
            self.part.control(Control::Journal).set(0);
        }
        self.put_back();
        self.close_all();
        self.leave();
        self.part.release_dead(is_dead);
    }

    /// Puts back what the journal says, the latest first, and makes anew what follows from the rest.
    fn put_back(&mut self) {
        let journal = self.part.control(Control::Journal);
        let written = usize::try_from(journal.get()).unwrap_or(JOURNAL).min(JOURNAL);
        for [place, old] in self.part.journal[..written].iter().rev() {
            let place = usize::try_from(place.get()).ok();
            // The head of the part is not of the journal's.
            let place = place.filter(|&place| place >= CONTROL_WORDS + 2 * JOURNAL);
            if let Some(word) = place.and_then(|place| self.part.all.get(place)) {
                word.set(old.get());
            }
        }
        journal.set(0);
        self.written = 0;
        self.part.make_anew();
        self.loose = 0;
        self.freed = Freed::default();
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
fn next(lock: u64) -> u64 {
    ((lock >> HOLDER) + 1) << HOLDER
}
