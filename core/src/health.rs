//! How a store is: what an operator asks first.

use std::fmt;
use std::time::Duration;

use crate::ErrorKind;

/// How a limiter's store is.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The store, without credentials.
    pub store: String,
    /// Whether it answered just now, and requests may ask it.
    pub ok: bool,
    /// `closed` while it is asked, `open` while it is not, after failures, `trial` while one request tries
    /// it again.
    pub circuit: &'static str,
    /// How often it went from closed to open.
    pub opened: u64,
    /// What failed last, as its kind and its text; none when nothing has.
    pub last_error: Option<(ErrorKind, String)>,
    /// How long ago that was.
    pub last_error_age: Option<Duration>,
    /// The server's version, such as `7.0.15`; none for a store in this process, and when it did not say.
    pub server_version: Option<String>,
    /// What the server does when its memory is full; none when it did not say.
    pub maxmemory_policy: Option<String>,
    /// Whether the server has a limit of memory and would then drop the keys of limiters, which gives
    /// their owners all their room back; none when it did not say.
    pub may_drop_keys: Option<bool>,
    /// How far the server's clock is ahead of this process's, in microseconds, to half a round trip.
    pub clock_ahead_us: Option<i64>,
    /// The layout of the state that this release writes.
    pub layout: u32,
}

/// What an operator should hear of a store, once: for the log.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Which store, without credentials, and what of it.
    pub text: String,
    /// An error where the store is not asked any more; a warning where it is again.
    pub is_error: bool,
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The layout of states on Redis.
pub(crate) const LAYOUT: u32 = 1;

impl Health {
    /// That of a store in this process, which cannot be away.
    pub(crate) fn local(store: &str) -> Self {
        Self {
            store: store.to_owned(),
            ok: true,
            circuit: "closed",
            opened: 0,
            last_error: None,
            last_error_age: None,
            server_version: None,
            maxmemory_policy: None,
            may_drop_keys: Some(false),
            clock_ahead_us: None,
            layout: LAYOUT,
        }
    }
}
