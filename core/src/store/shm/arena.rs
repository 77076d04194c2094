//! Room for lists: blocks of 16-byte units, their sizes powers of two, each at a multiple of its size.
//!
//! Which granules are taken follows from the states, so that it is made anew after a kill. A list lies in
//! its block as a ring: what is added lies behind its end, and what is dropped stays where it was, until
//! the slot's words say so; whatever else changes is done in a copy.

use std::marker::PhantomData;

use super::layout::GRANULE;
use super::part::{Guard, Part, Unit};
use super::slot::{Kind, Stored};
use super::word::Word;
use crate::algorithm::concurrency::Lease;
use crate::algorithm::list::List;
use crate::algorithm::sliding_log::Entry;
use crate::clock::MAX_TIME_US;
use crate::receipt::Lease as Id;

/// So many granules from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub first: usize,
    pub granules: usize,
}

/// A list in a block.
#[derive(Clone, Copy)]
pub(super) struct Ring<T> {
    units: &'static [Unit],
    pub block: Block,
    head: usize,
    len: usize,
    of: PhantomData<T>,
}

/// What a ring holds.
pub(super) trait Item: Copy {
    const UNITS: usize;

    fn load(units: &[Unit]) -> Option<Self>;

    fn store(self, units: &[Unit]);
}

impl Item for Entry {
    const UNITS: usize = 1;

    fn load(units: &[Unit]) -> Option<Self> {
        let [at, count] = units.first()?;
        Some((at.get().min(MAX_TIME_US), count.get() as u32))
    }

    fn store(self, units: &[Unit]) {
        if let Some([at, count]) = units.first() {
            at.set(self.0);
            count.set(self.1.into());
        }
    }
}

impl Item for Lease {
    const UNITS: usize = 2;

    fn load(units: &[Unit]) -> Option<Self> {
        let [[end, count], [high, low]] = units.first_chunk()?;
        let id = Id { high: high.get(), low: low.get() };
        Some(Self::new(end.get().min(MAX_TIME_US << 1), count.get() & 0xffff_ffff, id))
    }

    fn store(self, units: &[Unit]) {
        if let Some([[end, count], [high, low]]) = units.first_chunk() {
            end.set(self.end);
            count.set(self.count);
            high.set(self.id.high);
            low.set(self.id.low);
        }
    }
}

impl Block {
    /// For so many units.
    pub fn granules(units: usize) -> usize {
        units.div_ceil(GRANULE).next_power_of_two()
    }

    pub fn units(self) -> usize {
        self.granules * GRANULE
    }
}

impl<T: Item> Ring<T> {
    /// The ring that a slot's second word says; none for what cannot be.
    pub fn of(part: &Part, stored: Stored) -> Option<Self> {
        let block = part.block_of(stored)?;
        let [_, word] = stored.words;
        let (head, len) = ((word >> 19 & 0x3ffff) as usize, (word & 0x7ffff) as usize);
        let ring = Self::in_block(part, block)?;
        (len <= ring.room() && head < ring.room()).then_some(Self { head, len, ..ring })
    }

    /// An empty one.
    pub fn in_block(part: &Part, block: Block) -> Option<Self> {
        let first = block.first * GRANULE;
        let units = part.units.get(first..first + block.units())?;
        Some(Self { units, block, head: 0, len: 0, of: PhantomData })
    }

    /// How many it can hold; a power of two.
    pub fn room(&self) -> usize {
        self.units.len() / T::UNITS
    }

    /// What a slot's second word says of it.
    pub fn word(&self) -> u64 {
        block_word(self.block) | (self.head as u64) << 19 | self.len as u64
    }

    pub fn unit(&self, place: usize) -> Option<&'static Unit> {
        self.units.get(place)
    }

    fn at(&self, place: usize) -> &'static [Unit] {
        let place = (self.head + place) & (self.room() - 1);
        self.units.get(place * T::UNITS..).unwrap_or(&[])
    }
}

impl<T: Item> List<T> for Ring<T> {
    fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn get(&self, place: usize) -> Option<T> {
        if place < self.len { T::load(self.at(place)) } else { None }
    }

    fn put(&mut self, place: usize, item: T) {
        if place < self.len {
            item.store(self.at(place));
        }
    }

    fn push(&mut self, item: T) {
        if self.len < self.room() {
            item.store(self.at(self.len));
            self.len += 1;
        }
    }

    fn drop_first(&mut self, count: usize) {
        let count = count.min(self.len);
        self.head = (self.head + count) & (self.room() - 1);
        self.len -= count;
    }

    fn remove(&mut self, place: usize) {
        for later in place + 1..self.len {
            if let Some(item) = self.get(later) {
                self.put(later - 1, item);
            }
        }
        self.len -= usize::from(place < self.len);
    }
}

/// The block's part of a slot's second word.
pub(super) fn block_word(block: Block) -> u64 {
    (block.first as u64) << 42 | u64::from(block.granules.trailing_zeros()) << 37
}

impl Part {
    /// The block of a list; none for other states, and for what cannot be.
    pub fn block_of(&self, stored: Stored) -> Option<Block> {
        if !matches!(Kind::of(stored.words)?, Kind::Log | Kind::Buckets | Kind::Leases) {
            return None;
        }
        let word = stored.words[1];
        let block = Block { first: (word >> 42) as usize, granules: 1 << (word >> 37 & 31) };
        let fits = block.first + block.granules <= self.units.len() / GRANULE;
        (fits && block.first.is_multiple_of(block.granules)).then_some(block)
    }

    /// Marks a block as taken; false where some of it is.
    pub fn take(&self, block: Block) -> bool {
        let is_free = self.each_mark(block).all(|(mark, bits)| mark.get() & bits == 0);
        if is_free {
            self.each_mark(block).for_each(|(mark, bits)| mark.set(mark.get() | bits));
        }
        is_free
    }

    pub fn give_back(&self, block: Block) {
        self.each_mark(block).for_each(|(mark, bits)| mark.set(mark.get() & !bits));
    }

    fn each_mark(&self, block: Block) -> impl Iterator<Item = (&'static Word, u64)> {
        let marks = self.marks;
        let end = block.first + block.granules;
        let words = block.first / 64..end.div_ceil(64);
        words.filter_map(move |word| {
            let (from, to) = (block.first.max(word * 64), end.min(word * 64 + 64));
            let bits = u64::MAX >> (64 - (to - from)) << (from % 64);
            marks.get(word).map(|mark| (mark, bits))
        })
    }
}

impl Guard<'_> {
    /// Takes a block of so many units that nobody has; none where there is none.
    pub fn take_block(&mut self, units: usize) -> Option<Block> {
        let granules = Block::granules(units);
        let all = self.part.units.len() / GRANULE;
        let mut first = 0;
        while first + granules <= all {
            // Nothing of a full word is looked at.
            if first.is_multiple_of(64) && self.part.marks[first / 64].get() == u64::MAX {
                first += granules.max(64);
                continue;
            }
            let block = Block { first, granules };
            if self.part.take(block) {
                self.loose += 1;
                return Some(block);
            }
            first += granules;
        }
        None
    }

    /// Gives a block back that was taken in vain.
    pub fn untake(&mut self, block: Block) {
        self.part.give_back(block);
        self.loose = self.loose.saturating_sub(1);
    }
}
