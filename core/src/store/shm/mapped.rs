//! An open file: its parts, its owners, its clock. What a process has opened stays open until it ends, or until the file
//! has been removed for a while: a record lock is lost with any descriptor of its file.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags};

use super::layout::{self, Geometry, HEADER_WORDS, Header};
use super::owner::{OWNER_WORDS, OWNERS, Owners};
use super::part::{Holder, Part, holder};
use super::trouble::Stuck;
use super::word::Word;
use crate::clock::{self, Now, Time};
use crate::store::bucket::Fingerprint;
use crate::{Error, ErrorKind, Result};

pub(super) struct Mapped {
    pub parts: Box<[Part]>,
    pub owners: Owners,
    pub geometry: Geometry,
    pub header: Header,
    pub file: &'static OwnedFd,
    /// Which file that is: of what device, and its number there.
    place: Option<(i128, u64)>,
    words: &'static [Word],
    /// What this process's steady time lies behind the file's, in microseconds.
    behind_us: i64,
    stuck: Stuck,
    /// When it is next looked for whether the file still has its name.
    pub next_look: AtomicU64,
}

impl Mapped {
    pub fn new(
        file: &'static OwnedFd,
        words: &'static [Word],
        geometry: Geometry,
        header: Header,
    ) -> Result<Self> {
        let parts = (0..geometry.parts).map(|index| Part::new(index, &geometry, words));
        let parts: Option<Box<[Part]>> = parts.collect();
        let owners = words.get(HEADER_WORDS..HEADER_WORDS + OWNERS * OWNER_WORDS);
        let (Some(parts), Some(owners)) = (parts, owners) else {
            return Err(Error::internal("the parts of a file that lie outside of it"));
        };
        Ok(Self {
            parts,
            owners: Owners::new(owners.as_chunks().0, file),
            geometry,
            header,
            file,
            place: place(file),
            words,
            behind_us: header.offset_us.wrapping_sub(own_offset_us()).cast_signed(),
            stuck: Stuck::default(),
            next_look: AtomicU64::new(0),
        })
    }

    /// That its header still says what it said.
    ///
    /// # Errors
    /// `store_corrupt` when something else wrote there.
    pub fn check(&self) -> Result<()> {
        let (geometry, header) = layout::read_header(self.words)?;
        if (geometry, header) == (self.geometry, self.header) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::StoreCorrupt, "has another header than it had"))
    }

    /// Whether its descriptor still is the file's: an app may have closed all that it did not open itself.
    pub fn has_descriptor(&self) -> bool {
        self.place.is_some() && place(self.file) == self.place
    }

    /// Gives back the memory and the file, which nobody should use any more. Whoever still does finds an empty one of
    /// his own.
    pub fn let_go(&self) {
        let size = size_of_val(self.words);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
        let place = self.words.as_ptr().cast_mut().cast();
        // SAFETY: it takes the place of a mapping of that size; any words are words.
        let _ = unsafe { rustix::mm::mmap_anonymous(place, size, protection, flags) };
        if !self.has_descriptor() {
            return;
        }
        if let Ok(nothing) = fs::File::open("/dev/null") {
            // SAFETY: both descriptors are open; the second one stays so, and is nobody else's.
            unsafe { libc::dup2(nothing.as_raw_fd(), self.file.as_raw_fd()) };
        }
    }

    /// The file's clocks, or the given one.
    #[inline]
    pub fn now(&self, time: Time) -> Now {
        let now = clock::resolve(time);
        if time.given().is_some() {
            return now;
        }
        Now { steady: now.steady.saturating_add_signed(self.behind_us), wall: now.wall }
    }

    #[inline]
    pub fn key(&self, key: &[u8]) -> Fingerprint {
        Fingerprint::keyed(self.header.seed, key)
    }

    /// The part that a key's states lie in, of all its limits. The number of parts is a power of two.
    #[inline]
    pub fn part_index(&self, key: Fingerprint) -> usize {
        key.high as usize & (self.parts.len() - 1)
    }

    /// This process, as who holds a part.
    #[inline]
    pub fn holder(&self, timeout: Duration) -> Result<Holder<'_>> {
        let own = match self.owners.own() {
            Some(own) => own,
            None => self.owners.claim(|own| self.release(own, timeout))?,
        };
        Ok(Holder { own, owners: &self.owners, parts: &self.parts, stuck: &self.stuck, timeout })
    }

    /// Frees what the last process of that number holds.
    fn release(&self, own: u64, timeout: Duration) {
        let who = Holder { own, owners: &self.owners, parts: &self.parts, stuck: &self.stuck, timeout };
        for part in &self.parts {
            let lock = part.lock_word();
            if holder(lock) == own {
                // One that must be settled first is, by whoever needs it: its lead comes before it here.
                drop(part.take_from_the_dead(lock, who));
            }
            part.release_dead(|number| number == own);
        }
    }

    /// How many states there are, and live ones that were forgotten for want of room.
    pub fn counts(&self) -> (u64, u64) {
        let each = self.parts.iter().map(|part| (part.used() as u64, part.evicted()));
        each.fold((0, 0), |(used, evicted), (more, forgotten)| (used + more, evicted.wrapping_add(forgotten)))
    }

    /// Whether it is time to look for the file again; for one caller.
    #[inline]
    pub fn is_to_be_looked_for(&self, now: Now) -> bool {
        const EVERY_US: u64 = 1_000_000;
        let next = self.next_look.load(Ordering::Relaxed);
        now.steady >= next
            && self
                .next_look
                .compare_exchange(next, now.steady + EVERY_US, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

/// The device of a file, and its number there; none where the descriptor is closed.
fn place(file: &OwnedFd) -> Option<(i128, u64)> {
    rustix::fs::fstat(file).ok().map(|stat| (i128::from(stat.st_dev), stat.st_ino))
}

/// What must be added to the boot clock of the machine for this process's steady time. A namespace may have a boot
/// clock of its own, which lies apart from the machine's by a known number.
pub(super) fn own_offset_us() -> u64 {
    let text = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let apart = text.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let is_boot = matches!(fields.next()?, "boottime" | "7");
        let (seconds, nanos): (i64, i64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        is_boot.then(|| seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000))
    });
    clock::offset_us().saturating_add_signed(apart.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::super::settings::Settings;

    #[test]
    fn what_is_let_go_is_an_empty_file_of_nobody() {
        let [random, _] = crate::store::bucket::random_seed();
        let settings = Settings::parse(&format!("unit-let-go-{random:x}?max_keys=8&log_entries=4")).unwrap();
        let mapped = file::open(&settings).unwrap();
        assert!(mapped.check().is_ok() && mapped.holder(settings.timeout).is_ok());
        assert!(!file::is_gone(&mapped, &settings.path) && mapped.has_descriptor());
        std::fs::remove_file(&settings.path).unwrap();
        assert!(file::is_gone(&mapped, &settings.path));
        mapped.let_go();
        assert!(mapped.words.iter().all(|word| word.get() == 0));
        assert!(!mapped.has_descriptor() && mapped.check().is_err());
        drop(mapped.parts[0].lock(mapped.holder(settings.timeout).unwrap()).unwrap());
    }
}
