//! The system's clocks by the processor's counter, at a third of the price of asking the kernel.
//!
//! Each thread anchors the counter at the kernel's clocks, measures how fast it runs from one anchor
//! to the next, and follows it for at most a millisecond. So a clock that is slewed, a counter that
//! jumps and a machine that sleeps are noticed within that time. Where the kernel itself does not
//! read this counter, it is asked each time.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use rustix::time::{ClockId, Timespec, clock_gettime};

use super::Now;
use crate::once::Once;

/// How long the counter is followed, in microseconds.
const FOLLOWED_US: u64 = 1_000;

/// The bits of a fraction of a microsecond.
const FRACTION: u32 = 32;

/// How far the civil clock is ahead of the other, in microseconds. It is one for all threads, and changes
/// only when somebody sets the clock: what one thread wrote at the beginning of a window must not lie in
/// the future for another.
static AHEAD_US: AtomicI64 = AtomicI64::new(0);

/// How far the boot clock was behind the civil one when it was first read.
static OFFSET: Once<u64> = Once::new();

/// The clock that no one sets, and that runs on while the machine sleeps.
#[cfg(target_os = "linux")]
const STEADY: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const STEADY: ClockId = ClockId::Monotonic;

thread_local!(static ANCHOR: Cell<Anchor> = const { Cell::new(Anchor::NONE) });

/// Reads both clocks: the boot clock (it runs on while the machine sleeps) plus the wall offset, taken
/// once, and the civil clock. Within a thread the first never falls.
#[inline]
pub(super) fn read() -> Now {
    ANCHOR.with(|cell| {
        let anchor = cell.get();
        let ticks = counter().wrapping_sub(anchor.ticks);
        if ticks < anchor.followed { anchor.after(ticks) } else { renew(cell) }
    })
}

/// What is added to the boot clock for the steady time, in microseconds.
#[cfg(feature = "shm")]
pub(super) fn offset_us() -> u64 {
    Anchor::take();
    *OFFSET.get_or_make(|| 0)
}

/// Where the counter stood at a reading of the kernel's clocks, and how fast it runs.
#[derive(Clone, Copy)]
struct Anchor {
    ticks: u64,
    /// The boot clock plus the offset.
    at: u64,
    /// The boot clock's part of a microsecond, in 2^-32.
    fraction: u64,
    /// Microseconds a tick, in 2^-32; 0 when not known.
    pace: u64,
    /// For how many ticks it is followed: 0 while two measurements of the pace don't agree.
    followed: u64,
    /// The latest time that was told before.
    told: u64,
}

impl Anchor {
    const NONE: Self = Self { ticks: 0, at: 0, fraction: 0, pace: 0, followed: 0, told: 0 };

    #[inline]
    fn after(&self, ticks: u64) -> Now {
        let us = (self.fraction + ticks * self.pace) >> FRACTION;
        let steady = (self.at + us).max(self.told);
        Now { steady, wall: steady.saturating_add_signed(AHEAD_US.load(Ordering::Relaxed)) }
    }

    /// Asks the kernel; also, how many ticks that took: between them nobody knows where the counter was.
    fn take() -> (Self, u64) {
        let before = counter();
        let boot = clock_gettime(STEADY);
        let gap = counter().wrapping_sub(before);
        let wall = clock_gettime(ClockId::Realtime);
        let (boot_us, wall) = (micros(boot), micros(wall));
        let between = micros(clock_gettime(STEADY)).saturating_sub(boot_us);
        let steady = boot_us + OFFSET.get_or_make(|| wall.saturating_sub(boot_us));
        let ahead = wall.cast_signed() - steady.cast_signed();
        // The two are not read at once, and less than a microsecond is cut off of each.
        if ahead.abs_diff(AHEAD_US.load(Ordering::Relaxed)) > between + 2 {
            AHEAD_US.store(ahead, Ordering::Relaxed);
        }
        let fraction = ((boot.tv_nsec.unsigned_abs() % 1_000) << FRACTION) / 1_000;
        (Self { ticks: before.wrapping_add(gap / 2), at: steady, fraction, ..Self::NONE }, gap)
    }

    /// The pace from an earlier anchor to this one; none when something came between its readings.
    fn pace_since(&self, earlier: &Self, gap: u64) -> Option<u64> {
        let ticks = self.ticks.wrapping_sub(earlier.ticks);
        if gap > ticks >> 12 {
            return None;
        }
        let us = u128::from(self.at.checked_sub(earlier.at)?);
        let span =
            ((us << FRACTION) + u128::from(self.fraction)).checked_sub(u128::from(earlier.fraction))?;
        u64::try_from(span / u128::from(ticks.max(1))).ok().filter(|&pace| pace > 0)
    }
}

/// A new anchor where it is time for one; what the kernel says in any case.
#[cold]
fn renew(cell: &Cell<Anchor>) -> Now {
    let old = cell.get();
    let (mut new, gap) = Anchor::take();
    if old.followed > 0 {
        new.told = old.after(old.followed).steady;
    }
    let known = new.after(0);
    let is_first = old.at == 0;
    if !is_first && (known.steady < old.at + FOLLOWED_US || !is_trusted()) {
        return known;
    }
    if let Some(pace) = new.pace_since(&old, gap).filter(|_| !is_first) {
        new.pace = pace;
        // Over a sleep, or a jump of the counter, it does not agree with the stretch before.
        if pace.abs_diff(old.pace) <= old.pace >> 9 {
            new.followed = (FOLLOWED_US << FRACTION) / pace;
        }
    }
    cell.set(new);
    known
}

fn micros(time: Timespec) -> u64 {
    time.tv_sec.max(0).unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1_000
}

#[inline]
fn counter() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every processor of this architecture has the counter. Where a process may not read it
    // (a seccomp rule), it may not read the clock either.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    return 0;
}

/// Whether the kernel goes by this counter: then it runs evenly, through sleeps of the processor, and
/// is the same on all of them.
fn is_trusted() -> bool {
    static TRUSTED: Once<bool> = Once::new();
    *TRUSTED.get_or_make(|| {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        cfg!(all(target_arch = "x86_64", target_os = "linux", not(miri)))
            && std::fs::read(source).is_ok_and(|source| source.trim_ascii() == b"tsc")
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn kernel() -> Now {
        Anchor::take().0.after(0)
    }

    #[test]
    fn it_keeps_to_the_kernel_and_never_falls() {
        let begun = Instant::now();
        let mut last = 0;
        while begun.elapsed() < Duration::from_millis(50) {
            let (before, now, after) = (kernel(), read(), kernel());
            assert!(now.steady >= last, "{now:?} after {last}");
            last = now.steady;
            // Between the two readings the thread may be made to wait: only then they lie apart.
            assert!(
                now.steady + 10 >= before.steady && now.steady <= after.steady + 10,
                "{before:?} {now:?} {after:?}"
            );
            assert!(
                now.wall + 10 >= before.wall && now.wall <= after.wall + 10,
                "{before:?} {now:?} {after:?}"
            );
        }
    }

    #[test]
    fn the_two_clocks_lie_equally_far_apart_for_all_threads() {
        let apart = || {
            let mut all: Vec<i64> = (0..20_000)
                .map(|_| read())
                .map(|now| now.wall.cast_signed() - now.steady.cast_signed())
                .collect();
            all.dedup();
            all
        };
        let first = apart();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(apart)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), first);
        }
    }

    #[test]
    fn a_counter_that_jumps_or_stands_is_left_at_once() {
        for ticks in [0, u64::MAX, counter()] {
            let mut old = Anchor { pace: 1 << 22, followed: 1 << 20, ticks, ..Anchor::take().0 };
            old.at -= 2_000;
            let cell = Cell::new(old);
            assert!(renew(&cell).steady.abs_diff(kernel().steady) < 1_000_000);
            assert_eq!(cell.get().followed, 0);
        }
    }
}
