//! Who holds a lock, and whether he still lives.
//!
//! Each process has a number in the file: a place in the table of owners. While it lives the kernel
//! holds a record lock for it on a byte that belongs to that place, which it loses at its end, however
//! it ends, once none of its threads runs any more. Such a lock is no child's (as one of an open file
//! would be), and is the same for all namespaces of processes. A process loses it too when it closes
//! another descriptor of the same file; so where the kernel says that nobody holds it, its number and
//! start are looked up as well.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::word::Word;
use crate::fork;
use crate::{Error, ErrorKind, Result};

/// The most processes that use a file at the same time: their numbers have 12 bits.
pub(super) const OWNERS: usize = 4_095;
pub(super) const OWNER_WORDS: usize = 4;

/// The first byte of the record locks, far behind the end of every file.
const LOCKS_AT: i64 = 1 << 40;

/// The byte that is locked by who replaces the file.
const REPLACING_AT: i64 = LOCKS_AT - 1;

pub(super) struct Owners {
    table: &'static [[Word; OWNER_WORDS]],
    file: &'static OwnedFd,
    /// This process's number, with the count of the forks before it: a child has another.
    own: AtomicU64,
}

/// What tells a process from all others since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    process: u64,
    namespace: u64,
    started: u64,
}

impl Owners {
    pub fn new(table: &'static [[Word; OWNER_WORDS]], file: &'static OwnedFd) -> Self {
        Self { table, file, own: AtomicU64::new(0) }
    }

    /// This process's number, where it has one.
    #[inline]
    pub fn own(&self) -> Option<u64> {
        let own = self.own.load(Ordering::Acquire);
        (own != 0 && own >> 32 == u64::from(fork::generation())).then_some(own & 0xffff_ffff)
    }

    /// Takes a number for this process. `release` frees what the last one to have it still holds.
    ///
    /// # Errors
    /// `store_full` when too many processes use the file.
    #[cold]
    pub fn claim(&self, release: impl Fn(u64)) -> Result<u64> {
        fork::naming(|| {
            if let Some(own) = self.own() {
                return Ok(own);
            }
            let me = Identity::own();
            for (place, entry) in self.table.iter().enumerate() {
                // Another copy of this library in this process, whose lock would be granted to this one, too.
                if Identity::of(entry) == me || !lock(self.file, LOCKS_AT + place as i64) {
                    continue;
                }
                let own = place as u64 + 1;
                entry[1].set(me.namespace);
                entry[2].set(me.started);
                entry[0].set(me.process);
                release(own);
                self.own.store(u64::from(fork::generation()) << 32 | own, Ordering::Release);
                return Ok(own);
            }
            Err(Error::new(
                ErrorKind::StoreFull,
                format!("{OWNERS} processes use this shared-memory store: no more can"),
            ))
        })
    }

    /// Whether the process with that number lives; false for a number that nobody has.
    #[cold]
    pub fn lives(&self, number: u64) -> bool {
        let place = number.wrapping_sub(1);
        let Some(entry) = usize::try_from(place).ok().and_then(|place| self.table.get(place)) else {
            return false;
        };
        if is_locked(self.file, LOCKS_AT + place as i64) || self.own() == Some(number) {
            return true;
        }
        let (owner, me) = (Identity::of(entry), Identity::own());
        owner.process != 0 && owner.namespace == me.namespace && owner.is_running()
    }
}

/// Lets one process at a time replace the file; false when another does.
pub(super) fn lock_to_replace(file: &OwnedFd) -> bool {
    lock(file, REPLACING_AT)
}

impl Identity {
    fn own() -> Self {
        let process = u64::from(std::process::id());
        let namespace = fs::metadata("/proc/self/ns/pid");
        Self {
            process,
            namespace: namespace.map_or(0, |it| std::os::unix::fs::MetadataExt::ino(&it)),
            started: state("self").map_or(0, |(_, started)| started),
        }
    }

    fn of([process, namespace, started, _]: &[Word; OWNER_WORDS]) -> Self {
        Self { process: process.get(), namespace: namespace.get(), started: started.get() }
    }

    /// Whether a process with this number runs that started then. Where nobody can say it does not.
    fn is_running(&self) -> bool {
        state(&self.process.to_string())
            .is_some_and(|(state, started)| !matches!(state, 'Z' | 'X' | 'x') && started == self.started)
    }
}

/// The letter of a process's state, and when it started, in ticks since the machine did.
fn state(process: &str) -> Option<(char, u64)> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program before it may hold anything, but no more brackets follow.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.nth(18)?.parse().ok()?))
}

/// A record lock on one byte: granted at once, or not.
fn lock(file: &OwnedFd, at: i64) -> bool {
    record_lock(file, at, libc::F_SETLK).is_some()
}

/// Whether another process holds it. Where the kernel does not say, it is taken as held: who waits in vain is told,
/// who goes past a living holder breaks something.
fn is_locked(file: &OwnedFd, at: i64) -> bool {
    record_lock(file, at, libc::F_GETLK).is_none_or(|kind| kind != libc::F_UNLCK as libc::c_short)
}

fn record_lock(file: &OwnedFd, at: i64, command: libc::c_int) -> Option<libc::c_short> {
    // SAFETY: all of its fields are integers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = at;
    lock.l_len = 1;
    // SAFETY: the descriptor is open, and the structure lives through the call.
    (unsafe { libc::fcntl(file.as_raw_fd(), command, &mut lock) } == 0).then_some(lock.l_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_those_before_it_with_its_number() {
        let me = Identity::own();
        assert!(me.is_running() && me.started > 0 && me.namespace > 0);
        assert!(!Identity { started: me.started - 1, ..me }.is_running());
        assert!(!Identity { process: 1 << 30, ..me }.is_running());
    }
}
