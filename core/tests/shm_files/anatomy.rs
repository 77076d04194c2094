//! What lies where in a file, known apart from the library: for who damages one on purpose.

use std::hash::Hasher;
use std::ops::Range;

use siphasher::sip::SipHasher13;

/// A page each.
const HEADER_WORDS: usize = 512;
const OWNERS: usize = 4_096 * 4;
const JOURNAL: usize = 256;
const CONTROL: usize = 16;
const BOOT: usize = 10;
const CHECKSUM: usize = 15;

/// Words of a part's head.
pub mod control {
    pub const LOCK: usize = 0;
    pub const FREE: usize = 1;
    pub const USED: usize = 2;
    pub const JOURNAL: usize = 7;
    pub const LEAD: usize = 8;
    pub const LEAD_VERSION: usize = 9;
    pub const OPEN: usize = 10;
}

/// The words of a file's parts.
#[derive(Clone, Copy)]
pub struct Anatomy {
    pub parts: usize,
    pub slots: usize,
    pub heads: usize,
    pub log_entries: usize,
}

impl Anatomy {
    /// Of a file, whose length it must explain.
    pub fn of(bytes: &[u8]) -> Self {
        let word = |at| word(bytes, at) as usize;
        let anatomy = Self { log_entries: word(4), parts: word(5), slots: word(6), heads: word(7) };
        let words = HEADER_WORDS + OWNERS + anatomy.parts * anatomy.part_words();
        assert_eq!(
            words.next_multiple_of(512) * 8,
            bytes.len(),
            "the layout is another than these tests know"
        );
        anatomy
    }

    /// The words of a part: its head, its journal, its chains, its slots, what is taken, the lists.
    fn lengths(&self) -> [usize; 6] {
        let whole = |words: usize| words.next_multiple_of(8);
        let marks = self.log_entries.div_ceil(64);
        [CONTROL, 2 * JOURNAL, whole(self.heads), 4 * self.slots, whole(marks), 8 * self.log_entries]
    }

    fn part_words(&self) -> usize {
        self.lengths().iter().sum::<usize>().next_multiple_of(16)
    }

    fn range(&self, part: usize, which: usize) -> Range<usize> {
        let first = HEADER_WORDS + OWNERS + part * self.part_words();
        let first = first + self.lengths()[..which].iter().sum::<usize>();
        first..first + self.lengths()[which]
    }

    pub fn control(&self, part: usize) -> Range<usize> {
        self.range(part, 0)
    }

    pub fn journal(&self, part: usize) -> Range<usize> {
        self.range(part, 1)
    }

    pub fn heads(&self, part: usize) -> Range<usize> {
        self.range(part, 2)
    }

    pub fn slots(&self, part: usize) -> Range<usize> {
        self.range(part, 3)
    }

    pub fn marks(&self, part: usize) -> Range<usize> {
        self.range(part, 4)
    }

    pub fn units(&self, part: usize) -> Range<usize> {
        self.range(part, 5)
    }

    pub fn owners(&self) -> Range<usize> {
        HEADER_WORDS..HEADER_WORDS + OWNERS
    }

    pub fn all(&self) -> Range<usize> {
        self.control(0).start..self.units(self.parts - 1).end
    }
}

pub fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap())
}

pub fn set(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at * 8..at * 8 + 8].copy_from_slice(&value.to_le_bytes());
}

/// Makes a header fit what it says.
pub fn sign(bytes: &mut [u8]) {
    let mut hash = SipHasher13::new();
    (0..CHECKSUM).for_each(|at| hash.write_u64(word(bytes, at)));
    let checksum = hash.finish();
    set(bytes, CHECKSUM, checksum);
}

/// Makes it a file of another run of the machine.
pub fn of_an_earlier_boot(bytes: &mut [u8]) {
    let boot = word(bytes, BOOT);
    set(bytes, BOOT, boot ^ 0xdead);
    sign(bytes);
}

/// Gives a header's word a value, as a foreign release could have.
pub fn with(bytes: &[u8], at: usize, value: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    set(&mut bytes, at, value);
    sign(&mut bytes);
    bytes
}
