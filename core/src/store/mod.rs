//! Stores: where the state lives. All of them offer one operation: decide groups of charges.

pub(crate) mod bucket;
pub(crate) mod charge;
mod memory;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod refusals;
#[cfg(feature = "shm")]
mod shm;

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::clock::{self, Now, Time};
use crate::health::Health;
use crate::receipt::Receipt;
use crate::{Error, ErrorKind, News, Result};
use charge::{Charge, Group, Mode, Outcomes, Request, Verdict};
use memory::MemoryStore;

/// Units to give back: of each charge its cost, as far as the receipt covers it.
pub(crate) struct Refund<'a> {
    pub charges: &'a [Charge<'a>],
    pub receipt: Receipt,
    /// Whether it undoes what nobody was told: then a queue gives back, too.
    pub undo: bool,
}

/// The units that each charge of a refund gave back.
pub(crate) type Given = SmallVec<[u64; 2]>;

/// What decides in this process while a store elsewhere does not.
pub(crate) struct StandIn<'a> {
    pub memory: &'a MemoryStore,
    /// The store's time, as it is now as far as this process knows.
    pub time: Time,
}

impl StandIn<'_> {
    pub fn now(&self) -> Now {
        clock::resolve(self.time)
    }
}

#[cfg(feature = "redis")]
pub(crate) use redis::driver::Driver as LoopStore;
#[cfg(feature = "redis")]
pub use redis::driver::Watch;

/// What a store in this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    pub keys: u64,
    pub evicted: u64,
}

/// Where the state lives; clones share it. Opening a store opens no socket and starts no thread.
#[derive(Clone)]
pub struct Store(Backend);

#[derive(Clone)]
enum Backend {
    Memory(Arc<MemoryStore>),
    #[cfg(feature = "redis")]
    Redis(Arc<redis::RedisStore>),
    #[cfg(feature = "shm")]
    Shm(Arc<shm::ShmStore>),
}

impl Store {
    /// Opens a store by its URI.
    ///
    /// - `memory:` is this store's own; `memory:NAME` is shared by all who name it in this process. The
    ///   parameters are `max_keys` (1 000 000) and `when_full`: what happens to a new key when that many
    ///   live ones are kept, `evict_least_indebted` (the default) or `refuse` (the error `store_full`).
    /// - `shm:NAME` is shared by all processes of this host and user that name it, whatever their language;
    ///   `shm:///PATH` names the file itself. The parameters are `max_keys` (100 000), `log_entries` (1 024:
    ///   the largest limit of a sliding log, and half as much of concurrency), `mode` (600) and `group` of
    ///   the file, `when_full` as above, and `timeout_ms` (1 000: how long a process that is stopped while it
    ///   decides is waited for).
    /// - `redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]`, `rediss://` for TLS, and
    ///   `redis+unix://[[USER]:PASSWORD@]/PATH` (or `valkey` in place of `redis`). The parameters are
    ///   `prefix` (default `mirab`), `hash_keys` (a secret under which the identities in keys are hashed),
    ///   `timeout_ms` (a decision's deadline, 50), `connect_timeout_ms` (a process's first connection,
    ///   500), `pool` (round trips under way at once, 4), `db` (a socket's database), `password_env` and
    ///   `password_file` (where the password is, read for each connection), and for TLS `tls_ca`,
    ///   `tls_cert` and `tls_key` (files: whom to trust, the client's own certificate and key).
    ///
    /// # Errors
    /// `invalid_uri` for what is malformed or unknown, `unsupported` for what this build lacks; of shared
    /// memory what is wrong with the file: `store_unavailable`, `store_denied`, `store_corrupt`,
    /// `store_mismatch`.
    /// Passwords never show in an error.
    pub fn open(uri: &str) -> Result<Self> {
        let (scheme, rest) = uri.split_once(':').unwrap_or((uri, ""));
        if scheme.bytes().any(|byte| byte.is_ascii_uppercase()) && uri.contains(':') {
            return Self::open(&format!("{}:{rest}", scheme.to_ascii_lowercase()));
        }
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
            #[cfg(feature = "tls")]
            "rediss" | "valkeys" => redis::open(uri).map(Backend::Redis).map(Self),
            #[cfg(not(feature = "tls"))]
            "rediss" | "valkeys" => Err(Error::unsupported(format!(
                "a store of scheme {scheme:?}: this build lacks the feature \"tls\""
            ))),
            #[cfg(feature = "shm")]
            "shm" => shm::open(rest).map(Backend::Shm).map(Self),
            #[cfg(not(feature = "shm"))]
            "shm" => Err(Error::unsupported(
                "a store of scheme \"shm\": this build lacks the feature \"shm\"".to_owned(),
            )),
            "redis+sentinel" | "redis+cluster" => {
                Err(Error::unsupported(format!("a store of scheme {scheme:?} is not in this release")))
            }
            _ => {
                // What stands before an `@` may be a password.
                let scheme = if rest.starts_with("//") || !uri.contains('@') { scheme } else { "…" };
                Err(Error::new(
                    ErrorKind::InvalidUri,
                    format!(
                        "a store of scheme {scheme:?}: it must be memory:, shm:NAME, redis://HOST, rediss://HOST or \
                         redis+unix:///PATH (valkey does for redis)"
                    ),
                ))
            }
        }
    }

    /// Whether it decides in this process, so that no operation ever blocks on a network.
    pub fn is_local(&self) -> bool {
        match self.0 {
            Backend::Memory(_) => true,
            #[cfg(feature = "redis")]
            Backend::Redis(_) => false,
            #[cfg(feature = "shm")]
            Backend::Shm(_) => true,
        }
    }

    /// Whether it can fail, so that something else may have to decide.
    pub(crate) fn can_fail(&self) -> bool {
        !matches!(self.0, Backend::Memory(_))
    }

    /// `memory`, `shm` or `redis`.
    pub fn kind(&self) -> &'static str {
        match self.0 {
            Backend::Memory(_) => "memory",
            #[cfg(feature = "redis")]
            Backend::Redis(_) => "redis",
            #[cfg(feature = "shm")]
            Backend::Shm(_) => "shm",
        }
    }

    /// What tells this store from others, the same in every process that reaches it.
    pub(crate) fn identity(&self) -> String {
        match &self.0 {
            Backend::Memory(store) => format!("memory {:p}", Arc::as_ptr(store)),
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.identity(),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.identity(),
        }
    }

    /// Decides a request, and answers what `answer` makes of the verdict.
    #[inline]
    pub(crate) fn decide_request<T>(
        &self,
        request: &Request<'_>,
        mode: Mode,
        time: Time,
        answer: impl FnOnce(Verdict<'_>) -> T,
    ) -> Result<T> {
        match &self.0 {
            Backend::Memory(store) => store.decide_request(request, mode, time, answer),
            #[cfg(feature = "redis")]
            Backend::Redis(store) => {
                store.decide_request(request, mode, time).map(|outcome| answer(outcome.verdict()))
            }
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.decide_request(request, mode, time, answer),
        }
    }

    /// Decides requests in their order, each all or nothing, and answers what `answer` makes of each
    /// verdict.
    pub(crate) fn decide_requests<T>(
        &self,
        requests: &[Request<'_>],
        mode: Mode,
        time: Time,
        mut answer: impl FnMut(&Request<'_>, Verdict<'_>) -> T,
    ) -> Result<Vec<Result<T>>> {
        match &self.0 {
            Backend::Memory(store) => {
                let decide =
                    |request| store.decide_request(request, mode, time, |verdict| answer(request, verdict));
                Ok(requests.iter().map(decide).collect())
            }
            #[cfg(feature = "redis")]
            Backend::Redis(store) => {
                let groups: Vec<Group<'_>> =
                    requests.iter().map(|request| Group { charges: request.charges().collect() }).collect();
                let outcomes = store.decide(&groups, mode, time)?;
                let told = requests.iter().zip(outcomes);
                Ok(told.map(|(request, outcome)| Ok(answer(request, outcome?.verdict()))).collect())
            }
            #[cfg(feature = "shm")]
            Backend::Shm(store) => {
                let decide =
                    |request| store.decide_request(request, mode, time, |verdict| answer(request, verdict));
                Ok(requests.iter().map(decide).collect())
            }
        }
    }

    /// Decides the groups in their order, each all or nothing.
    pub(crate) fn decide(&self, groups: &[Group<'_>], mode: Mode, time: Time) -> Result<Outcomes> {
        match &self.0 {
            Backend::Memory(store) => Ok(store.decide(groups, mode, time)),
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.decide(groups, mode, time),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.decide(groups, mode, time),
        }
    }

    /// Whether it can keep the states of these limits for one key.
    ///
    /// # Errors
    /// `unsupported` where their lists have no room.
    #[cfg_attr(not(feature = "shm"), expect(unused_variables))]
    pub(crate) fn check(&self, limits: &[crate::limit::Limit]) -> Result<()> {
        match &self.0 {
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.check(limits),
            _ => Ok(()),
        }
    }

    /// Gives back what a receipt says was taken; the units that each of the charges gave back.
    pub(crate) fn refund(&self, refund: &Refund<'_>, time: Time) -> Result<Given> {
        match &self.0 {
            Backend::Memory(store) => Ok(store.refund(refund, time)),
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.refund(refund, time),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.refund(refund, time),
        }
    }

    /// Refuses a key for so long, under any policy; a later block replaces it.
    pub(crate) fn block(&self, key: &[u8], for_us: u64, time: Time) -> Result<()> {
        match &self.0 {
            Backend::Memory(store) => {
                store.block(key, for_us, time);
                Ok(())
            }
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.block(key, for_us, time),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.block(key, for_us, time),
        }
    }

    pub(crate) fn unblock(&self, key: &[u8], time: Time) -> Result<()> {
        match &self.0 {
            Backend::Memory(store) => {
                store.unblock(key, time);
                Ok(())
            }
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.unblock(key, time),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.unblock(key, time),
        }
    }

    /// What decides in the place of a store that can fail; none for memory, which cannot.
    #[cfg_attr(not(any(feature = "redis", feature = "shm")), expect(unused_variables))]
    pub(crate) fn stand_in(&self, time: Time) -> Option<StandIn<'_>> {
        match &self.0 {
            Backend::Memory(_) => None,
            #[cfg(feature = "redis")]
            Backend::Redis(store) => Some(store.stand_in(time)),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => Some(store.stand_in(time)),
        }
    }

    /// How long until it may be known whether a store elsewhere decides again, in microseconds.
    pub(crate) fn known_after_us(&self) -> u64 {
        match &self.0 {
            Backend::Memory(_) => 0,
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.known_after_us(),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.known_after_us(),
        }
    }

    /// What drives it in an event loop; none for a store in this process, which never waits.
    #[cfg(feature = "redis")]
    pub(crate) fn in_a_loop<T>(&self) -> Result<Option<LoopStore<T>>> {
        match &self.0 {
            Backend::Memory(_) => Ok(None),
            #[cfg(feature = "shm")]
            Backend::Shm(_) => Ok(None),
            Backend::Redis(store) => redis::driver::Driver::new(store).map(Some),
        }
    }

    #[cfg(feature = "redis")]
    pub(crate) fn is_driven_by<T>(&self, driver: &LoopStore<T>) -> bool {
        matches!(&self.0, Backend::Redis(store) if driver.is_of(store))
    }

    /// How it is, asked now.
    pub(crate) fn health(&self) -> Health {
        match &self.0 {
            Backend::Memory(_) => Health::local("memory:"),
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.health(),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.health(),
        }
    }

    /// The oldest of what an operator should know and was not told yet.
    pub(crate) fn next_news(&self) -> Option<News> {
        match &self.0 {
            Backend::Memory(_) => None,
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.next_news(),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.next_news(),
        }
    }

    /// What is kept on this machine; none where the state lives elsewhere.
    pub(crate) fn contents(&self) -> Option<Contents> {
        match &self.0 {
            Backend::Memory(store) => Some(store.contents()),
            #[cfg(feature = "redis")]
            Backend::Redis(_) => None,
            #[cfg(feature = "shm")]
            Backend::Shm(store) => Some(store.contents()),
        }
    }

    /// Forgets the state of each of these charges, and the blocks of their keys.
    pub(crate) fn reset(&self, charges: &[Charge<'_>], time: Time) -> Result<()> {
        match &self.0 {
            Backend::Memory(store) => {
                store.reset(charges, time);
                Ok(())
            }
            #[cfg(feature = "redis")]
            Backend::Redis(store) => store.reset(charges, time),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => store.reset(charges, time),
        }
    }
}

/// A store of this limiter's own, in memory.
impl Default for Store {
    fn default() -> Self {
        Self(Backend::Memory(MemoryStore::own()))
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Backend::Memory(_) => f.write_str("Store(memory:)"),
            #[cfg(feature = "redis")]
            Backend::Redis(store) => write!(f, "Store({})", store.shown()),
            #[cfg(feature = "shm")]
            Backend::Shm(store) => write!(f, "Store({})", store.shown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_later_schemes_are_told_apart() {
        let kind = |uri| Store::open(uri).unwrap_err().kind();
        assert_eq!(kind("redis+cluster://h"), ErrorKind::Unsupported);
        assert_eq!(kind("redis+sentinel://h"), ErrorKind::Unsupported);
        for uri in
            ["", "mongodb://h", "127.0.0.1:6379", "memory:a b", "memory:?max=3", "memory:web?max_keys=0"]
        {
            assert_eq!(kind(uri), ErrorKind::InvalidUri, "{uri}");
        }
        assert!(Store::open("Memory:").is_ok() && Store::open("REDIS://127.0.0.1:1").is_ok());
        let without_scheme = Store::open("hunter2@127.0.0.1:6379").unwrap_err().to_string();
        assert!(!without_scheme.contains("hunter2"), "{without_scheme}");
    }

    #[test]
    fn a_memory_store_is_its_own_or_named() {
        for uri in ["memory:", "memory://", "memory:web"] {
            assert!(Store::open(uri).unwrap().is_local(), "{uri}");
        }
    }
}
