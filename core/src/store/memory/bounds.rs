//! How much a memory store may hold, and what happens when it is full of live entries.

use std::str::FromStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::{Error, ErrorKind, Result};

const DEFAULT_MAX_KEYS: usize = 1_000_000;

/// The bound of a store and its counts.
pub(super) struct Bounds {
    settings: Settings,
    entries: AtomicUsize,
    evicted: AtomicU64,
}

/// What a store's URI says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub max_keys: usize,
    pub when_full: WhenFull,
}

/// What happens to a new key when only live entries are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhenFull {
    /// The one that owes least is forgotten: it is soonest as if it had never been.
    EvictLeastIndebted,
    /// The new key gets the error `store_full`.
    Refuse,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_keys: DEFAULT_MAX_KEYS, when_full: WhenFull::EvictLeastIndebted }
    }
}

impl FromStr for Settings {
    type Err = Error;

    /// `max_keys=N&when_full=evict_least_indebted|refuse`
    fn from_str(query: &str) -> Result<Self> {
        let mut settings = Self::default();
        let mut given = Vec::new();
        for parameter in query.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if given.contains(&name) {
                return Err(invalid(name, value, "given once"));
            }
            given.push(name);
            match name {
                "max_keys" => {
                    let number = value.parse().ok().filter(|number| (1..=1 << 32).contains(number));
                    settings.max_keys = number
                        .ok_or_else(|| invalid(name, value, "a whole number from 1 to 4294967296 (2^32)"))?;
                }
                "when_full" => {
                    settings.when_full = match value {
                        "evict_least_indebted" => WhenFull::EvictLeastIndebted,
                        "refuse" => WhenFull::Refuse,
                        _ => return Err(invalid(name, value, "evict_least_indebted or refuse")),
                    };
                }
                _ => {
                    return Err(Error::new(
                        ErrorKind::InvalidUri,
                        format!(
                            "the parameter {name:?} of a memory store: it must be one of max_keys, when_full"
                        ),
                    ));
                }
            }
        }
        Ok(settings)
    }
}

fn invalid(name: &str, value: &str, right: &str) -> Error {
    Error::new(
        ErrorKind::InvalidUri,
        format!("the parameter {name}={value:?} of a memory store: it must be {right}"),
    )
}

impl Bounds {
    pub fn new(settings: Settings) -> Self {
        Self { settings, entries: AtomicUsize::new(0), evicted: AtomicU64::new(0) }
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Whether the next entry is one too many.
    pub fn are_reached(&self) -> bool {
        self.entries.load(Ordering::Relaxed) >= self.settings.max_keys
    }

    pub fn came(&self) {
        self.entries.fetch_add(1, Ordering::Relaxed);
    }

    pub fn left(&self, entries: usize) {
        if entries > 0 {
            self.entries.fetch_sub(entries, Ordering::Relaxed);
        }
    }

    pub fn evicted(&self) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// Entries that are kept, and live ones that were forgotten for want of room.
    pub fn counts(&self) -> (u64, u64) {
        (self.entries.load(Ordering::Relaxed) as u64, self.evicted.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_checked() {
        let settings: Settings = "max_keys=100&when_full=refuse".parse().unwrap();
        assert_eq!(settings, Settings { max_keys: 100, when_full: WhenFull::Refuse });
        assert_eq!("".parse(), Ok(Settings::default()));
        for (query, part) in [
            ("max_keys=0", "max_keys"),
            ("max_keys=-1", "\"-1\""),
            ("max_keys", "max_keys"),
            ("when_full=panic", "evict_least_indebted"),
            ("max=3", "\"max\""),
        ] {
            let error = query.parse::<Settings>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidUri);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
