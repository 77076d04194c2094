//! Who holds a lock, and whether he still lives.
//!
//! Each process has a number in the file: a place in the table of owners. While it lives the kernel
//! holds a record lock for it on a byte that belongs to that place, which it loses at its end, however
//! it ends, once none of its threads runs any more. Such a lock is no child's (as one of an open file
//! would be), and is the same for all namespaces of processes. A process loses it too when it closes
//! another descriptor of the same file; so where the kernel says that nobody holds it, its number,
//! start and program are looked up as well.

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

/// In the first word of an entry: the bits of when its owner started; and that he is coming, and has not written the
/// others.
const STARTED: u32 = 40;
const COMING: u64 = 1 << 63;

/// What tells a process from all others since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    process: u64,
    namespace: u64,
    started: u64,
    /// Where its stack began: another place each time that it becomes another program, whose threads are none of
    /// those before. 0 where that is not to be known.
    stack: u64,
}

/// What the kernel says of a process: the letter of its state, how many threads it has, when it started, in ticks
/// since the machine did, and where its stack began.
struct Process {
    state: char,
    threads: u64,
    started: u64,
    stack: u64,
}

impl Owners {
    pub fn new(table: &'static [[Word; OWNER_WORDS]], file: &'static OwnedFd) -> Self {
        Self { table, file, own: AtomicU64::new(0) }
    }

    /// This process's number, where it has one.
    #[inline]
    pub fn own(&self) -> Option<u64> {
        #[cfg(test)]
        if let Some(own) = super::turns::own() {
            return Some(own);
        }
        let own = self.own.load(Ordering::Acquire);
        (own != 0 && own >> 32 == u64::from(fork::generation())).then_some(own & 0xffff_ffff)
    }

    /// Takes a number for this process. `release` frees what the last one to have it still holds.
    ///
    /// # Errors
    /// `store_unavailable` when too many processes use the file.
    #[cold]
    pub fn claim(&self, release: impl Fn(u64)) -> Result<u64> {
        fork::naming(|| {
            if let Some(own) = self.own() {
                return Ok(own);
            }
            let me = Identity::own();
            for (place, entry) in self.table.iter().enumerate() {
                // Another copy of this library in this process, whose lock would be granted to this one, too.
                let (word, at) = (entry[0].get_first(), LOCKS_AT + place as i64);
                let owner = Identity::of(word, entry);
                if owner.is(&me) || !lock(self.file, at) {
                    continue;
                }
                // The kernel's lock may be lost meanwhile, and be granted to another who comes: the word is one's alone.
                if owner.is_running_beside(&me) || !entry[0].exchange(word, me.word() | COMING) {
                    record_lock(self.file, at, libc::F_SETLK, libc::F_UNLCK);
                    continue;
                }
                entry[1].set(me.namespace);
                entry[2].set(me.stack);
                entry[0].set(me.word());
                let own = place as u64 + 1;
                release(own);
                self.own.store(u64::from(fork::generation()) << 32 | own, Ordering::Release);
                return Ok(own);
            }
            Err(Error::new(
                ErrorKind::StoreUnavailable,
                format!("{OWNERS} processes use this shared-memory store: no more can"),
            ))
        })
    }

    /// Whether the process with that number lives; false for a number that nobody has.
    #[cold]
    pub fn lives(&self, number: u64) -> bool {
        #[cfg(test)]
        if let Some(lives) = super::turns::lives(number) {
            return lives;
        }
        let place = number.wrapping_sub(1);
        let Some(entry) = usize::try_from(place).ok().and_then(|place| self.table.get(place)) else {
            return false;
        };
        if self.own() == Some(number) {
            return true;
        }
        let (owner, me) = (Identity::of(entry[0].get_first(), entry), Identity::own());
        match is_locked(self.file, LOCKS_AT + place as i64) {
            Some(true) => true,
            Some(false) => owner.is_running_beside(&me),
            // Who goes past a living holder breaks something: only one that is seen to be gone is.
            None => owner.namespace != me.namespace || owner.is_running_beside(&me),
        }
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
        let (started, stack) = Process::look_up("self").map_or((0, 0), |it| (it.started, it.stack));
        let namespace = namespace.map_or(0, |it| std::os::unix::fs::MetadataExt::ino(&it));
        Self { process, namespace, started, stack }
    }

    /// The first word of its entry: its number and when it started.
    fn word(&self) -> u64 {
        self.process << STARTED | self.started & ((1 << STARTED) - 1)
    }

    /// Whose an entry is with such a first word.
    fn of(word: u64, [_, namespace, stack, _]: &[Word; OWNER_WORDS]) -> Self {
        let (process, started) = ((word & !COMING) >> STARTED, word & ((1 << STARTED) - 1));
        // Of who is coming the others may not be written.
        let known = if word & COMING == 0 { [namespace.get(), stack.get()] } else { [0, 0] };
        Self { process, started, namespace: known[0], stack: known[1] }
    }

    /// Whether both are one, as far as it is known.
    fn is(&self, other: &Self) -> bool {
        let [here, there] = [self, other].map(|it| (it.process, it.started));
        here == there && alike(self.namespace, other.namespace) && alike(self.stack, other.stack)
    }

    /// Whether it is a process in the sight of this one, and still runs.
    fn is_running_beside(&self, me: &Self) -> bool {
        self.process != 0 && alike(self.namespace, me.namespace) && self.is_running()
    }

    /// Whether a process with this number runs that started then, and is still that program. Where nobody can say it
    /// does not.
    fn is_running(&self) -> bool {
        Process::look_up(&self.process.to_string()).is_some_and(|process| {
            let is_same = process.started == self.started && alike(process.stack, self.stack);
            is_same && !process.is_over()
        })
    }
}

/// Whether two numbers are the same, or one of them is not known.
fn alike(one: u64, other: u64) -> bool {
    one == other || one == 0 || other == 0
}

impl Process {
    fn look_up(process: &str) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name of the program before it may hold anything, but no more brackets follow.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let mut number = |after| fields.nth(after)?.parse().ok();
        Some(Self { state, threads: number(16)?, started: number(1)?, stack: number(5)? })
    }

    /// Whether all of its threads have ended, not its first one alone.
    fn is_over(&self) -> bool {
        matches!(self.state, 'X' | 'x') || self.state == 'Z' && self.threads <= 1
    }
}

/// A record lock on one byte: granted at once, or not.
fn lock(file: &OwnedFd, at: i64) -> bool {
    record_lock(file, at, libc::F_SETLK, libc::F_WRLCK).is_some()
}

/// Whether another process holds it; none where the kernel does not say.
fn is_locked(file: &OwnedFd, at: i64) -> Option<bool> {
    record_lock(file, at, libc::F_GETLK, libc::F_WRLCK).map(|kind| kind != libc::F_UNLCK as libc::c_short)
}

fn record_lock(
    file: &OwnedFd,
    at: i64,
    command: libc::c_int,
    kind: impl Into<libc::c_int>,
) -> Option<libc::c_short> {
    // SAFETY: all of its fields are integers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind.into() as libc::c_short;
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
        // Another program in the same process; who cannot see that takes it for the same.
        assert!(me.stack > 0 && !Identity { stack: me.stack + 16, ..me }.is_running());
        assert!(Identity { stack: 0, ..me }.is_running());
        assert!(!Identity { namespace: me.namespace + 1, ..me }.is_running_beside(&me));
    }

    #[test]
    fn an_entry_says_whose_it_is_also_while_he_is_coming() {
        let me = Identity::own();
        let entry: [Word; OWNER_WORDS] = Default::default();
        assert!(!Identity::of(0, &entry).is_running_beside(&me));
        // What stands there is of who had the place before.
        entry[1].set(me.namespace + 1);
        entry[2].set(me.stack + 16);
        assert!(!Identity::of(me.word(), &entry).is_running_beside(&me));
        let coming = Identity::of(me.word() | COMING, &entry);
        assert!(coming.is(&me) && coming.is_running_beside(&me));
        entry[1].set(me.namespace);
        entry[2].set(me.stack);
        assert_eq!(Identity::of(me.word(), &entry), me);
    }

    #[test]
    fn a_process_runs_while_any_of_its_threads_does() {
        let of = |state, threads| Process { state, threads, started: 1, stack: 1 };
        assert!(of('Z', 1).is_over() && of('X', 1).is_over());
        assert!(!of('Z', 2).is_over() && !of('T', 1).is_over());
    }
}
