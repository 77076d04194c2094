//! Slots: a state and the fingerprint of its limit and key, four words, in chains by fingerprint.
//!
//! A new state lies in a slot that nobody sees, until one word, a link, makes it part of its chain;
//! another takes it out. The words: the kind of the state with its instant; its numbers; the fingerprint; the next of
//! the chain, with what a list counts.
//!
//! A bucket's fraction or a window's count takes half of the second word, and a bit of the first says which half: a
//! new one is written into the other half, and is there with the instant, by one word.

use super::chain::NEXT;
use super::part::{Control, Guard, Holder, Part, Slot};
use super::word::Word;
use crate::Result;
use crate::algorithm::State;
use crate::clock::{MAX_TIME_US, Now, Time};
use crate::store::bucket::Fingerprint;

/// The kinds of a slot beyond those of a [`State`] of few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Small,
    Log,
    Buckets,
    Leases,
    Block,
}

const KIND: u32 = 60;

/// The first word of a slot that is free.
pub(super) const FREE: u64 = 7 << KIND;

/// Where a clock was given: such states have a space of their own.
const GIVEN: u64 = 1 << 63;

/// Where the second half of the numbers is meant.
const SECOND: u64 = 1 << 59;

/// The bits of an instant.
const INSTANT: u64 = (1 << 53) - 1;

/// What a slot says, besides whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub words: [u64; 2],
    /// What a list counts.
    pub total: u32,
}

/// Whose next one: the first of a chain, or that of a slot.
#[derive(Clone, Copy)]
pub(super) enum Link {
    Head(usize),
    Slot(usize),
}

#[derive(Clone, Copy)]
pub(super) enum Place {
    At(usize),
    Nowhere,
    /// The chain leads out of the part, or round in it.
    Broken,
}

impl Kind {
    pub fn of(words: [u64; 2]) -> Option<Self> {
        Some(match (words[0] & !GIVEN) >> KIND {
            0..=2 => Self::Small,
            3 => Self::Log,
            4 => Self::Buckets,
            5 => Self::Leases,
            6 => Self::Block,
            _ => return None,
        })
    }

    /// The first word of a state of this kind that is no state of few numbers.
    pub fn word(self, instant: u64) -> u64 {
        (2 + self as u64) << KIND | instant.min(MAX_TIME_US << 1)
    }
}

impl Stored {
    /// A state of few numbers; none for another.
    #[inline]
    pub fn small(self) -> Option<State> {
        let [first, numbers] = self.words;
        let kind = (first & !GIVEN) >> KIND;
        let numbers = match kind {
            0 | 1 if first & SECOND != 0 => numbers >> 32,
            0 | 1 => numbers & 0xffff_ffff,
            2 => numbers,
            _ => return None,
        };
        Some(State::from_words([kind << KIND | first & INSTANT, numbers]))
    }

    /// The words that say `state` in place of these, to be written one after the other: the second one first.
    /// None where between the two they would say something else.
    #[inline]
    pub fn followed_by(self, state: &State) -> Option<[u64; 2]> {
        let [first, numbers] = state.words()?;
        let [old, old_numbers] = self.words;
        let first = first | old & (GIVEN | SECOND);
        if first >> KIND & 3 == 2 {
            return (first == old || numbers == old_numbers).then_some([first, numbers]);
        }
        let shift = if old & SECOND == 0 { 0 } else { 32 };
        if old_numbers >> shift & 0xffff_ffff == numbers {
            return Some([first, old_numbers]);
        }
        // Into the other half, which is then meant.
        let other = 32 - shift;
        Some([first ^ SECOND, old_numbers & !(0xffff_ffff << other) | numbers << other])
    }

    pub fn is_given(self) -> bool {
        self.words[0] & GIVEN != 0
    }

    /// When it says nothing any more.
    pub fn end(self) -> u64 {
        match self.small() {
            Some(state) => state.end(),
            None => self.words[0] & INSTANT,
        }
    }

    pub fn is_spent(self, now: Now) -> bool {
        self.end() <= now.steady.min(now.wall)
    }

    /// As [`State::debt`]; of a block, which is nobody's to forget, more than any.
    pub fn debt(self, now: Now) -> u128 {
        match (self.small(), Kind::of(self.words)) {
            (Some(state), _) => state.debt(now),
            (_, Some(Kind::Block)) => u128::MAX,
            _ => u128::from(self.end().saturating_sub(now.steady)) * u128::from(self.total),
        }
    }
}

/// The fingerprint of a key's limit, in the space of such times.
#[inline]
pub(super) fn fingerprint(fingerprint: Fingerprint, time: Time) -> u64 {
    const GIVEN_TIME: u64 = 0x9e37_79b9_7f4a_7c15;
    if time.given().is_some() { fingerprint.low ^ GIVEN_TIME } else { fingerprint.low }
}

/// The bit of a state in the space of such times.
#[inline]
pub(super) fn space(time: Time) -> u64 {
    if time.given().is_some() { GIVEN } else { 0 }
}

impl Part {
    /// The place of the next one, one more than its number; 0 for none.
    #[inline]
    pub fn next(&self, link: Link) -> usize {
        (self.link(link).get() & NEXT) as usize
    }

    #[inline]
    pub fn link(&self, link: Link) -> &'static Word {
        match link {
            Link::Head(home) => self.head(home),
            Link::Slot(slot) => &self.slots[slot][3],
        }
    }

    /// The word of a link when it leads to another place.
    fn led(&self, link: Link, next: usize) -> (&'static Word, u64) {
        let word = self.link(link);
        (word, word.get() & !NEXT | next as u64)
    }

    #[inline]
    pub fn find(&self, fingerprint: u64) -> Place {
        self.find_link(fingerprint).0
    }

    #[inline]
    fn find_link(&self, fingerprint: u64) -> (Place, Link) {
        let home = self.home(fingerprint);
        self.find_behind(home, self.head(home).get(), fingerprint)
    }

    /// Where a fingerprint's slot lies behind a head that says so.
    #[inline]
    pub fn find_behind(&self, home: usize, head: u64, fingerprint: u64) -> (Place, Link) {
        let (mut link, mut next) = (Link::Head(home), (head & NEXT) as usize);
        for _ in 0..=self.slots.len() {
            if next == 0 {
                return (Place::Nowhere, link);
            }
            let Some(slot) = self.slots.get(next - 1) else { break };
            if slot[2].get() == fingerprint {
                return (Place::At(next - 1), link);
            }
            link = Link::Slot(next - 1);
            next = self.next(link);
        }
        (Place::Broken, link)
    }

    #[inline]
    pub fn stored(&self, slot: usize) -> Stored {
        let slot: &Slot = &self.slots[slot];
        Stored { words: [slot[0].get(), slot[1].get()], total: (slot[3].get() >> 32) as u32 }
    }

    /// Gives a slot back that no chain leads to.
    pub fn free(&self, slot: usize) {
        let free = self.control(Control::Free);
        self.slots[slot][0].set(FREE);
        self.slots[slot][3].set(free.get());
        free.set(slot as u64 + 1);
        let used = self.control(Control::Used);
        used.set(used.get().saturating_sub(1));
    }

    /// Takes what lies in a slot out of its chain, which is held, and gives the slot back, as a step of its own: one
    /// word. False where no chain leads there.
    fn forget(&self, slot: usize) -> bool {
        let stored = self.stored(slot);
        let (Place::At(found), link) = self.find_link(self.slots[slot][2].get()) else { return false };
        if found != slot {
            return false;
        }
        let (word, led) = self.led(link, self.next(Link::Slot(slot)));
        word.set(led);
        self.let_go(stored);
        self.free(slot);
        true
    }

    /// What goes with a slot that is given up.
    fn let_go(&self, stored: Stored) {
        if Kind::of(stored.words) == Some(Kind::Block) {
            let blocks = self.control(Control::Blocks);
            blocks.set(blocks.get().saturating_sub(1));
        } else if let Some(block) = self.block_of(stored) {
            self.give_back(block);
        }
    }

    pub fn used(&self) -> usize {
        usize::try_from(self.control(Control::Used).get()).unwrap_or(usize::MAX).min(self.slots.len())
    }
}

impl Guard<'_> {
    /// Forgets what lies in a slot, where that is still so once its chain is held; false where it is not, or another
    /// holds it.
    ///
    /// # Errors
    /// `store_corrupt` for a state that no chain leads to.
    pub fn forget_if(
        &mut self,
        slot: usize,
        who: Holder<'_>,
        is_so: impl FnOnce(Stored) -> bool,
    ) -> Result<bool> {
        let part = self.part;
        let home = part.home(part.slots[slot][2].get());
        let forgotten = self.holding(home, who, || is_so(part.stored(slot)).then(|| part.forget(slot)));
        match forgotten.flatten() {
            Some(false) => Err(self.damaged()),
            forgotten => Ok(forgotten.is_some()),
        }
    }

    /// Writes what a slot says.
    #[inline]
    pub fn write(&mut self, slot: usize, stored: Stored) -> Result<()> {
        let part = self.part;
        let words: &Slot = &part.slots[slot];
        self.put(&words[0], stored.words[0])?;
        self.put(&words[1], stored.words[1])?;
        let last = words[3].get();
        self.put(&words[3], last & 0xffff_ffff | u64::from(stored.total) << 32)
    }

    /// Adds what is not there yet, into a free slot, for which there is room.
    ///
    /// # Errors
    /// `store_corrupt` where none is free.
    pub fn insert(&mut self, fingerprint: u64, stored: Stored) -> Result<()> {
        let part = self.part;
        let free = part.control(Control::Free);
        let slot = usize::try_from(free.get()).ok().and_then(|free| free.checked_sub(1));
        let found = slot.and_then(|slot| Some((slot, part.slots.get(slot)?)));
        let Some((slot, words)) = found.filter(|(_, words)| words[0].get() == FREE) else {
            return Err(self.damaged());
        };
        // Nobody finds this slot before the last of these.
        self.loose += 1;
        free.set(words[3].get() & 0xffff_ffff);
        let used = part.control(Control::Used);
        used.set(used.get().wrapping_add(1));
        let head = Link::Head(part.home(fingerprint));
        words[0].set(stored.words[0]);
        words[1].set(stored.words[1]);
        words[2].set(fingerprint);
        words[3].set(part.next(head) as u64 | u64::from(stored.total) << 32);
        if Kind::of(stored.words) == Some(Kind::Block) {
            let blocks = part.control(Control::Blocks);
            blocks.set(blocks.get().wrapping_add(1));
        }
        let (word, led) = part.led(head, slot + 1);
        self.put(word, led)
    }

    /// Takes out what is there for a fingerprint; true when something was.
    pub fn remove(&mut self, fingerprint: u64) -> Result<bool> {
        let part = self.part;
        let (Place::At(slot), link) = part.find_link(fingerprint) else { return Ok(false) };
        let stored = part.stored(slot);
        let (word, led) = part.led(link, part.next(Link::Slot(slot)));
        self.put(word, led)?;
        self.freed.slots.push(slot);
        if Kind::of(stored.words) == Some(Kind::Block) {
            let blocks = part.control(Control::Blocks);
            blocks.set(blocks.get().saturating_sub(1));
            self.loose += 1;
        }
        self.freed.blocks.extend(part.block_of(stored));
        Ok(true)
    }
}
