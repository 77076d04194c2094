//! Stores: where the state lives. All of them offer one operation: decide groups of charges.

pub(crate) mod bucket;
pub(crate) mod charge;
mod fork;
mod memory;
#[cfg(feature = "redis")]
mod redis;

use std::fmt;
use std::sync::Arc;

use crate::clock::Time;
use crate::receipt::Lease;
use crate::{Error, ErrorKind, Result};
use charge::{Charge, Group, Mode, Outcomes};
use memory::MemoryStore;

/// Where the state lives; clones share it. Opening a store opens no socket and starts no thread.
#[derive(Clone)]
pub struct Store(Backend);

#[derive(Clone)]
enum Backend {
    Memory(Arc<MemoryStore>),
    #[cfg(feature = "redis")]
    Redis(Arc<redis::RedisStore>),
}

impl Store {
    /// Opens a store by its URI.
    ///
    /// - `memory:` is this store's own; `memory:NAME` is shared by all who name it in this process.
    /// - `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]` and `redis+unix:///PATH` (or `valkey` in place
    ///   of `redis`), with the parameters `prefix` (default `mirab`), `timeout_ms` (a decision's
    ///   deadline, 50), `connect_timeout_ms` (the process's first connection, 500) and `pool` (idle
    ///   connections kept, 16).
    ///
    /// # Errors
    /// `invalid_uri` for what is malformed or unknown, `unsupported` for what this build lacks.
    /// Passwords never show in an error.
    pub fn open(uri: &str) -> Result<Self> {
        let (scheme, rest) = uri.split_once(':').unwrap_or((uri, ""));
        match scheme {
            "memory" => memory::open(rest).map(Backend::Memory).map(Self),
            #[cfg(feature = "redis")]
            "redis" | "redis+unix" | "valkey" | "valkey+unix" => {
                redis::open(uri).map(Backend::Redis).map(Self)
            }
            #[cfg(not(feature = "redis"))]
            "redis" | "redis+unix" | "valkey" | "valkey+unix" => Err(Error::unsupported(format!(
                "a store of scheme {scheme:?}: this build lacks the feature \"redis\""
            ))),
            "rediss" | "valkeys" | "redis+sentinel" | "redis+cluster" | "shm" => {
                Err(Error::unsupported(format!("a store of scheme {scheme:?} is not in this release")))
            }
            _ => Err(Error::new(
                ErrorKind::InvalidUri,
                format!("a store of scheme {scheme:?}: it must be memory: or redis://HOST"),
            )),
        }
    }

    /// Whether it decides in this process, so that no operation ever blocks on a network.
    pub fn is_local(&self) -> bool {
        matches!(self.0, Backend::Memory(_))
    }

    /// `memory` or `redis`.
    pub fn kind(&self) -> &'static str {
        match self.0 {
            Backend::Memory(_) => "memory",
            #[cfg(feature = "redis")]
            Backend::Redis(_) => "redis",
        }
    }

    /// Decides the groups in their order, each all or nothing.
    pub(crate) fn decide(&self, groups: &[Group<'_>], mode: Mode, time: Time) -> Result<Outcomes> {
        match &self.0 {
            Backend::Memory(store) => Ok(store.decide(groups, mode, time)),
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.decide(groups, mode, time),
        }
    }

    /// Ends the leases of that identity; how many of them still counted.
    pub(crate) fn release(&self, charges: &[Charge<'_>], lease: Lease, time: Time) -> Result<u64> {
        match &self.0 {
            Backend::Memory(store) => Ok(store.release(charges, lease, time)),
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.release(charges, lease, time),
        }
    }

    /// Forgets the state of each of these charges.
    pub(crate) fn reset(&self, charges: &[Charge<'_>], time: Time) -> Result<()> {
        match &self.0 {
            Backend::Memory(store) => {
                store.reset(charges, time);
                Ok(())
            }
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.reset(charges, time),
        }
    }
}

/// A store of this limiter's own, in memory.
impl Default for Store {
    fn default() -> Self {
        Self(Backend::Memory(MemoryStore::new()))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Backend::Memory(_) => f.write_str("Store(memory:)"),
            #[cfg(feature = "redis")]
            Backend::Redis(store) => write!(f, "Store({})", store.shown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_later_schemes_are_told_apart() {
        let kind = |uri| Store::open(uri).unwrap_err().kind();
        assert_eq!(kind("shm:web"), ErrorKind::Unsupported);
        assert_eq!(kind("rediss://h"), ErrorKind::Unsupported);
        for uri in ["", "mongodb://h", "127.0.0.1:6379", "Memory:", "memory:a b", "memory:?max=3"] {
            assert_eq!(kind(uri), ErrorKind::InvalidUri, "{uri}");
        }
    }

    #[test]
    fn a_memory_store_is_its_own_or_named() {
        for uri in ["memory:", "memory://", "memory:web"] {
            assert!(Store::open(uri).unwrap().is_local(), "{uri}");
        }
    }
}
