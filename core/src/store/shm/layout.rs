//! The layout of the file: a header, the owners, and the parts, all in words of eight bytes.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::owner::{OWNER_WORDS, OWNERS};
use super::settings::Settings;
use super::word::Word;
use crate::{Error, ErrorKind};

/// The number of this layout; processes share a file only under the same one.
pub(crate) const LAYOUT: u64 = 1;

/// The most parts; a power of two.
const PARTS: usize = 64;

/// A part's share of the keys is not smaller, so that there is a choice of what to evict.
const LEAST_SHARE: usize = 64;

pub(super) const HEADER_WORDS: usize = 512;
pub(super) const CONTROL_WORDS: usize = 16;
pub(super) const SLOT_WORDS: usize = 4;
pub(super) const UNIT_WORDS: usize = 2;

/// How many words one step can change before it is whole.
pub(super) const JOURNAL: usize = 256;

/// Units of 16 bytes that are given out together.
pub(super) const GRANULE: usize = 4;

/// The units of a part for each entry of its longest list: two lists of that length, and their
/// copies while they change.
const ARENA: usize = 4;

/// Where in the header a word lies.
#[derive(Clone, Copy)]
pub(super) enum Field {
    Magic,
    Layout,
    Words,
    MaxKeys,
    LogEntries,
    Parts,
    Slots,
    Heads,
    Seed,
    Boot = 10,
    /// What must be added to the boot clock for the steady time, in microseconds.
    Offset = 12,
    Checksum = 15,
}

const MAGIC: u64 = u64::from_le_bytes(*b"mirabshm");

/// How a file is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub parts: usize,
    /// Slots of each part.
    pub slots: usize,
    /// Heads of chains of each part.
    pub heads: usize,
    /// The longest list; a power of two.
    pub log_entries: usize,
}

/// What a file's header says besides its geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub max_keys: u64,
    pub seed: [u64; 2],
    pub boot: [u64; 2],
    pub offset_us: u64,
}

impl Geometry {
    /// Room for at least `max_keys`, though hashing spreads them unevenly over the parts: six standard
    /// deviations more for each.
    pub fn of(settings: &Settings) -> Self {
        let parts = (settings.max_keys / LEAST_SHARE).clamp(1, PARTS);
        let parts = if parts.is_power_of_two() { parts } else { parts.next_power_of_two() / 2 };
        let share = settings.max_keys.div_ceil(parts);
        let spread = if parts == 1 { 0 } else { 6 * share.isqrt() + 8 };
        let slots = share + spread;
        Self {
            parts,
            slots,
            heads: slots,
            log_entries: settings.log_entries.next_power_of_two().max(GRANULE),
        }
    }

    pub fn units(&self) -> usize {
        ARENA * self.log_entries
    }

    /// Words that say which granules are taken.
    pub fn marks(&self) -> usize {
        (self.units() / GRANULE).div_ceil(64)
    }

    /// The words of a part, on cache lines of its own.
    pub fn part_words(&self) -> usize {
        let words = CONTROL_WORDS
            + 2 * JOURNAL
            + self.heads.next_multiple_of(8)
            + self.slots * SLOT_WORDS
            + self.marks().next_multiple_of(8)
            + self.units() * UNIT_WORDS;
        words.next_multiple_of(16)
    }

    pub fn first_part(&self) -> usize {
        (HEADER_WORDS + OWNERS * OWNER_WORDS).next_multiple_of(512)
    }

    /// The words of the whole file.
    pub fn words(&self) -> usize {
        (self.first_part() + self.parts * self.part_words()).next_multiple_of(512)
    }
}

/// Writes the header into a file that nobody else sees yet.
pub(super) fn write_header(words: &[Word], geometry: &Geometry, header: &Header) {
    let put = |field: Field, value: u64| words[field as usize].set(value);
    put(Field::Magic, MAGIC);
    put(Field::Layout, LAYOUT);
    put(Field::Words, geometry.words() as u64);
    put(Field::MaxKeys, header.max_keys);
    put(Field::LogEntries, geometry.log_entries as u64);
    put(Field::Parts, geometry.parts as u64);
    put(Field::Slots, geometry.slots as u64);
    put(Field::Heads, geometry.heads as u64);
    for half in 0..2 {
        words[Field::Seed as usize + half].set(header.seed[half]);
        words[Field::Boot as usize + half].set(header.boot[half]);
    }
    put(Field::Offset, header.offset_us);
    put(Field::Checksum, checksum(words));
}

/// Reads the header; the error says what is wrong with it.
pub(super) fn read_header(words: &[Word]) -> Result<(Geometry, Header), Error> {
    let corrupt = |what: String| Error::new(ErrorKind::StoreCorrupt, what);
    if words.len() < HEADER_WORDS {
        return Err(corrupt(format!("is only {} bytes long: it was cut off", words.len() * 8)));
    }
    let get = |field: Field| words[field as usize].get();
    if get(Field::Magic) != MAGIC {
        return Err(corrupt("is not a shared-memory store of mirab".to_owned()));
    }
    if get(Field::Layout) != LAYOUT {
        let found = get(Field::Layout);
        let message = format!("has layout {found}, this release reads and writes layout {LAYOUT}");
        return Err(Error::new(ErrorKind::StoreMismatch, message));
    }
    if get(Field::Checksum) != checksum(words) {
        return Err(corrupt("is damaged: its header contradicts itself".to_owned()));
    }
    let number = |field: Field| usize::try_from(get(field)).unwrap_or(0);
    let found = Geometry {
        parts: number(Field::Parts),
        slots: number(Field::Slots),
        heads: number(Field::Heads),
        log_entries: number(Field::LogEntries),
    };
    let (max_keys, log_entries) = (number(Field::MaxKeys), found.log_entries);
    let is_possible = (1..=Settings::MOST_KEYS).contains(&max_keys)
        && (1..=Settings::MOST_LOG_ENTRIES).contains(&log_entries);
    // Whoever makes one for these numbers divides it like this.
    let settings = is_possible.then(|| Settings { max_keys, log_entries, ..Settings::default() });
    let geometry = settings.map(|settings| Geometry::of(&settings)).filter(|geometry| *geometry == found);
    let geometry =
        geometry.ok_or_else(|| corrupt("is damaged: its header holds impossible numbers".to_owned()))?;
    if geometry.words() != words.len() || get(Field::Words) != words.len() as u64 {
        let (found, right) = (words.len() * 8, geometry.words() * 8);
        return Err(corrupt(format!(
            "is {found} bytes long in place of {right}: it was cut off or extended"
        )));
    }
    let pair = |field: Field| [words[field as usize].get(), words[field as usize + 1].get()];
    Ok((
        geometry,
        Header {
            max_keys: get(Field::MaxKeys),
            seed: pair(Field::Seed),
            boot: pair(Field::Boot),
            offset_us: get(Field::Offset),
        },
    ))
}

fn checksum(words: &[Word]) -> u64 {
    let mut hash = SipHasher13::new();
    words[..Field::Checksum as usize].iter().for_each(|word| hash.write_u64(word.get()));
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(geometry: &Geometry) -> Vec<Word> {
        let header = Header { max_keys: 100, seed: [1, 2], boot: [3, 4], offset_us: 5 };
        let words: Vec<Word> = (0..geometry.words()).map(|_| Word::default()).collect();
        write_header(&words, geometry, &header);
        words
    }

    #[test]
    fn a_million_keys_take_at_most_48_megabytes() {
        let geometry = Geometry::of(&Settings { max_keys: 1_000_000, ..Settings::default() });
        assert!(geometry.words() * 8 <= 48_000_000, "{}", geometry.words() * 8);
        assert!(geometry.parts * geometry.slots >= 1_000_000);
    }

    #[test]
    fn a_header_is_read_as_written_and_no_flipped_bit_is_overlooked() {
        let geometry = Geometry::of(&Settings { max_keys: 100, ..Settings::default() });
        let words = words(&geometry);
        let (read, header) = read_header(&words).unwrap();
        assert_eq!((read, header.boot, header.offset_us), (geometry, [3, 4], 5));
        for bit in 0..=(Field::Checksum as usize * 64 + 63) {
            let word = &words[bit / 64];
            word.set(word.get() ^ 1 << (bit % 64));
            let kind = read_header(&words).unwrap_err().kind();
            assert!(matches!(kind, ErrorKind::StoreCorrupt | ErrorKind::StoreMismatch), "{bit}");
            word.set(word.get() ^ 1 << (bit % 64));
        }
        assert!(read_header(&words).is_ok());
        let cut = read_header(&words[..words.len() - 512]).unwrap_err();
        assert!(cut.to_string().contains("cut off"), "{cut}");
    }
}
