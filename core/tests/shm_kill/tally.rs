//! Counts that every worker adds to, and that nobody's end can lose: a mapped file of atomic numbers.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::shm::Shared;

/// The most keys that are counted one by one.
pub const MOST_KEYS: u64 = 4_000;
const FIRST_KEY: usize = 96;
const WORDS: usize = FIRST_KEY + MOST_KEYS as usize;

/// What is counted, besides what each key was told.
#[derive(Clone, Copy)]
pub enum Count {
    /// Not zero when everybody is to end.
    Stop,
    /// The key of all those that hammer now.
    Key,
    /// How many decisions were begun.
    Begun,
    /// Leases that are held, and how often those were too many.
    InUse,
    TooMany,
    /// Units that were given back.
    Given,
    /// A process that somebody should know.
    Process,
    /// How often something else happened.
    Other,
    /// Units that were taken and told.
    Taken,
}

pub struct Tally {
    pub path: PathBuf,
    words: &'static [AtomicU64],
    /// Removes the file at the end, for who made it.
    _file: Option<Shared>,
}

impl Tally {
    pub fn new() -> Self {
        let shared = Shared::new("tally");
        let path = shared.path.clone();
        File::create_new(&path).unwrap().set_len((WORDS * 8) as u64).unwrap();
        Self { _file: Some(shared), ..Self::open(&path) }
    }

    pub fn open(path: &Path) -> Self {
        let file = File::options().read(true).write(true).open(path).unwrap();
        // SAFETY: the file has so many words, keeps them while anybody has it open, and is never unmapped.
        let words = unsafe {
            let (access, whole) = (libc::PROT_READ | libc::PROT_WRITE, WORDS * 8);
            let at = libc::mmap(std::ptr::null_mut(), whole, access, libc::MAP_SHARED, file.as_raw_fd(), 0);
            assert_ne!(at, libc::MAP_FAILED);
            std::slice::from_raw_parts(at.cast(), WORDS)
        };
        Self { path: path.to_owned(), words, _file: None }
    }

    pub fn get(&self, count: Count) -> u64 {
        self.words[count as usize].load(Ordering::SeqCst)
    }

    pub fn set(&self, count: Count, value: u64) {
        self.words[count as usize].store(value, Ordering::SeqCst);
    }

    /// Adds to a count; what it is then.
    pub fn add(&self, count: Count, more: u64) -> u64 {
        self.words[count as usize].fetch_add(more, Ordering::SeqCst).wrapping_add(more)
    }

    pub fn take(&self, count: Count, less: u64) {
        self.words[count as usize].fetch_sub(less, Ordering::SeqCst);
    }

    /// Whether everybody is to end.
    pub fn is_over(&self) -> bool {
        self.get(Count::Stop) != 0
    }

    /// How much of a key was told.
    pub fn told(&self, key: u64) -> u64 {
        self.words[FIRST_KEY + key as usize].load(Ordering::SeqCst)
    }

    pub fn tell(&self, key: u64) {
        self.words[FIRST_KEY + key as usize].fetch_add(1, Ordering::SeqCst);
    }

    /// Goes on to the key after this one, of which there is nothing left.
    pub fn next(&self, key: u64) {
        let word = &self.words[Count::Key as usize];
        let _ = word.compare_exchange(key, key + 1, Ordering::SeqCst, Ordering::SeqCst);
    }

    pub fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::SeqCst));
    }
}
