//! The script: put together from the parts that a call needs, its arguments and its answer.

use smallvec::SmallVec;

use super::wire::{Args, Reply};

use crate::algorithm::fixed_window::{FixedWindow, Window, Windows};
use crate::algorithm::interval::Span;
use crate::algorithm::leaky_bucket::LeakyBucket;
use crate::algorithm::sliding_window::Pair;
use crate::algorithm::token_bucket::Tat;
use crate::algorithm::{Algorithm, Seen, Tally};
use crate::clock::{MAX_TIME_US, Now, Time};
use crate::once::Once;
use crate::receipt::Lease;
use crate::store::charge::{Charge, Group, Mode, Outcome};
use crate::store::{Given, Refund};

/// What a key outlives its state by: a second of the server's clock, or a day where the time is
/// given, since a test may pause while its clock stands.
const MARGIN_MS: u64 = 1_000;
const GIVEN_MARGIN_MS: u64 = 86_400_000;

/// Digits of the start of a window that begins with a request: 2^52 has 16.
const START_DIGITS: usize = 16;

/// A script's text and the digest that the server knows it by.
pub(super) struct Program {
    pub source: String,
    pub digest: String,
}

impl Program {
    fn new(source: String) -> Self {
        Self { digest: redis::Script::new(&source).get_hash().to_owned(), source }
    }

    /// The script that decides with these parts.
    pub fn deciding(parts: usize) -> &'static Self {
        static PROGRAMS: [Once<Program>; 1 << Part::COUNT] = [const { Once::new() }; 1 << Part::COUNT];
        PROGRAMS[parts].get_or_make(|| Self::new(Part::assemble(parts, Part::DECIDE)))
    }

    /// The script that gives back what these charges took.
    pub fn refunding(charges: &[Charge<'_>]) -> &'static Self {
        static PROGRAMS: [Once<Program>; 1 << Part::COUNT] = [const { Once::new() }; 1 << Part::COUNT];
        let set = Part::set(charges.iter());
        PROGRAMS[set].get_or_make(|| Self::new(Part::assemble(set, Part::REFUND)))
    }

    /// The script that blocks a key.
    pub fn blocking() -> &'static Self {
        static PROGRAM: Once<Program> = Once::new();
        PROGRAM.get_or_make(|| Self::new(Part::assemble(0, include_str!("lua/block.lua"))))
    }
}

/// The parts of the script that these groups need.
pub(super) fn parts(groups: &[Group<'_>]) -> usize {
    Part::set(groups.iter().flat_map(|group| &group.charges))
}

/// How many numbers are told of each group that was decided.
pub(super) fn told(groups: &[Group<'_>]) -> SmallVec<[usize; 1]> {
    groups
        .iter()
        .map(|group| group.charges.iter().map(|charge| width(charge.bucket.algorithm())).sum())
        .collect()
}

fn width(algorithm: &Algorithm) -> usize {
    match algorithm {
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) | Algorithm::FixedWindow(_) => 2,
        Algorithm::SlidingWindow(_) => 3,
        Algorithm::SlidingLog(_) | Algorithm::SlidingBuckets(_) | Algorithm::Concurrency(_) => 4,
        Algorithm::Deny | Algorithm::Unlimited => 0,
    }
}

/// One algorithm's part of the scripts.
#[derive(Clone, Copy)]
enum Part {
    Bucket,
    Window,
    #[cfg_attr(not(feature = "calendar"), expect(dead_code, reason = "a build without calendars"))]
    Calendar,
    SlidingWindow,
    SlidingLog,
    SlidingBuckets,
    Concurrency,
}

impl Part {
    const COUNT: usize = 7;
    const PRELUDE: &str = include_str!("lua/prelude.lua");
    const DECIDE: &str = include_str!("lua/decide.lua");
    const REFUND: &str = include_str!("lua/refund.lua");
    const TALLY: &str = include_str!("lua/tally.lua");
    const TEXTS: [&str; Self::COUNT] = [
        include_str!("lua/bucket.lua"),
        include_str!("lua/window.lua"),
        include_str!("lua/calendar.lua"),
        include_str!("lua/sliding_window.lua"),
        include_str!("lua/sliding_log.lua"),
        include_str!("lua/sliding_buckets.lua"),
        include_str!("lua/concurrency.lua"),
    ];
    /// Those that share the tally.
    const TALLIED: usize =
        1 << Self::SlidingLog as usize | 1 << Self::SlidingBuckets as usize | 1 << Self::Concurrency as usize;

    fn of(algorithm: &Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => Self::Bucket,
            #[cfg(feature = "calendar")]
            Algorithm::FixedWindow(FixedWindow { windows: Windows::Calendar(_), .. }) => Self::Calendar,
            Algorithm::FixedWindow(_) => Self::Window,
            Algorithm::SlidingWindow(_) => Self::SlidingWindow,
            Algorithm::SlidingLog(_) => Self::SlidingLog,
            Algorithm::SlidingBuckets(_) => Self::SlidingBuckets,
            Algorithm::Concurrency(_) => Self::Concurrency,
            Algorithm::Deny | Algorithm::Unlimited => return None,
        })
    }

    /// The set of parts that these charges need.
    fn set<'a, 'b: 'a>(charges: impl Iterator<Item = &'a Charge<'b>>) -> usize {
        let parts = charges.filter_map(|charge| Self::of(charge.bucket.algorithm()));
        parts.fold(0, |set, part| set | 1 << part as usize)
    }

    fn assemble(set: usize, frame: &str) -> String {
        let mut parts = Self::PRELUDE.to_owned();
        if set & Self::TALLIED != 0 {
            parts.push_str(Self::TALLY);
        }
        for (part, text) in Self::TEXTS.iter().enumerate() {
            if set & 1 << part != 0 {
                parts.push_str(text);
            }
        }
        parts + frame
    }
}

/// What the script is to do with a group.
#[derive(Clone, Copy)]
enum Order {
    Ask = 0,
    Take = 1,
    /// Refuse, since the cost can never pass, and write back what is to be mended.
    Refuse = 2,
    /// Take what is there, without asking.
    Charge = 3,
}

/// What all scripts are given first.
pub(super) fn time_arguments(command: &mut Args, time: Time) {
    match time.given() {
        Some(us) => command.arg(us).arg(GIVEN_MARGIN_MS),
        None => command.arg("-1").arg(MARGIN_MS),
    };
}

/// One call of the deciding script.
pub(super) struct Call<'a, 'b> {
    pub groups: &'a [Group<'b>],
    pub leases: &'a [Lease],
    pub mode: Mode,
    /// About what time it is there: the windows of a calendar around it are sent.
    pub near: u64,
}

impl Call<'_, '_> {
    /// Adds the groups' arguments.
    pub fn arguments(&self, command: &mut Args) {
        for (group, &lease) in self.groups.iter().zip(self.leases) {
            let order = match self.mode {
                Mode::Peek => Order::Ask,
                Mode::Acquire if group.never_admitted() => Order::Refuse,
                Mode::Acquire => Order::Take,
                Mode::Charge => Order::Charge,
            };
            command.arg(group.keys().len()).arg(stored(group).count()).arg(order as usize);
            for charge in stored(group) {
                // What can never pass is refused anyway, and what is taken without asking is at most that.
                let cost = charge.cost.min(charge.bucket.algorithm().capacity());
                charge_arguments(command, charge, cost, lease, self.near, true);
            }
        }
    }
}

/// Adds the arguments of the refunding script behind its keys.
pub(super) fn refund_arguments(command: &mut Args, refund: &Refund<'_>, time: Time, near: u64) {
    time_arguments(command, time);
    let receipt = &refund.receipt;
    for charge in refund.charges {
        charge_arguments(command, charge, charge.cost, Lease::default(), near, !refund.undo);
        let wall = charge.bucket.algorithm().reads_wall();
        command.arg(if wall { receipt.at.wall } else { receipt.at.steady });
        command.arg(receipt.cost).arg(super::key::lease(receipt.lease, receipt.cost));
        command.arg(receipt.full_at.whole).arg(receipt.full_at.fraction);
    }
}

/// The charges that have a key.
pub(super) fn stored<'a, 'b>(group: &'b Group<'a>) -> impl Iterator<Item = &'b Charge<'a>> {
    group.charges.iter().filter(|charge| charge.bucket.algorithm().has_state())
}

fn charge_arguments(
    command: &mut Args,
    charge: &Charge<'_>,
    cost: u64,
    lease: Lease,
    near: u64,
    queues: bool,
) {
    let algorithm = charge.bucket.algorithm();
    match algorithm {
        Algorithm::TokenBucket(bucket) | Algorithm::LeakyBucket(LeakyBucket { bucket }) => {
            // More than the capacity neither fits nor is owed; the script's numbers stay in the domain.
            let span = bucket.interval.times(cost.min(bucket.capacity));
            command.arg("t").arg(cost).arg(span.whole).arg(span.fraction);
            command.arg(bucket.full.whole).arg(bucket.full.fraction).arg(bucket.interval.q);
            command.arg(queues && matches!(algorithm, Algorithm::LeakyBucket(_)));
        }
        Algorithm::FixedWindow(it) => {
            fixed_window(command, it, cost, near);
        }
        Algorithm::SlidingWindow(it) => {
            command.arg("w").arg(cost).arg(it.limit).arg(it.period_us);
        }
        Algorithm::SlidingLog(it) => {
            command.arg("g").arg(cost).arg(it.limit).arg(it.period_us);
        }
        Algorithm::SlidingBuckets(it) => {
            command.arg("b").arg(cost).arg(it.limit).arg(it.period_us).arg(it.buckets);
        }
        Algorithm::Concurrency(it) => {
            command.arg("c").arg(cost).arg(it.limit).arg(it.expires_us).arg(super::key::lease(lease, 1));
        }
        Algorithm::Deny | Algorithm::Unlimited => {}
    }
}

fn fixed_window(command: &mut Args, window: &FixedWindow, cost: u64, near: u64) {
    #[cfg(not(feature = "calendar"))]
    let _ = near;
    let digits = match window.windows {
        Windows::Clock => digits(MAX_TIME_US / window.period_us),
        Windows::First => START_DIGITS,
        #[cfg(feature = "calendar")]
        Windows::Calendar(calendar) => {
            let (start, end) = calendar.window(near);
            let before = calendar.window(start.saturating_sub(1)).0;
            command.arg("k").arg(cost).arg(window.limit);
            command.arg(before).arg(start).arg(end).arg(calendar.window(end).1);
            return;
        }
    };
    let first = window.windows == Windows::First;
    command.arg("f").arg(cost).arg(window.limit).arg(window.period_us).arg(first).arg(digits);
}

/// The script's answer to one group.
pub(super) enum Answer {
    Decided(Outcome),
    /// The value of this key of the group is not one of ours.
    Corrupt(usize),
    /// The server's time lies in none of the windows that were sent.
    Elsewhere(u64),
}

/// Reads the script's answers; none when they have another shape.
pub(super) fn answers(
    reply: &Reply,
    groups: &[Group<'_>],
    leases: &[Lease],
) -> Option<SmallVec<[Answer; 1]>> {
    let Reply::Integers(numbers) = reply else { return None };
    let mut numbers = numbers.iter().copied();
    let now = u64::try_from(numbers.next()?).ok()?;
    let now = Now { steady: now, wall: now };
    let mut answers = SmallVec::new();
    for (group, &lease) in groups.iter().zip(leases) {
        let verdict = numbers.next()?;
        let mut outcome = Outcome { admitted: false, now, seen: SmallVec::new(), lease };
        match verdict {
            ..0 => {
                answers.push(Answer::Corrupt(usize::try_from(-verdict - 1).ok()?));
                continue;
            }
            2 => {
                outcome.seen.push(Seen::Blocked(u64::try_from(numbers.next()?).ok()?));
                answers.push(Answer::Decided(outcome));
                continue;
            }
            3 => {
                answers.push(Answer::Elsewhere(now.steady));
                continue;
            }
            _ => outcome.admitted = verdict == 1 && !group.never_admitted(),
        }
        for charge in &group.charges {
            outcome.seen.push(read(charge.bucket.algorithm(), now, &mut numbers)?);
        }
        answers.push(Answer::Decided(outcome));
    }
    Some(answers)
}

/// Reads the refunding script's answer: the units that each charge gave back, or which of them has a
/// value that is not ours.
pub(super) fn given(reply: &Reply, refund: &Refund<'_>) -> Option<Result<Given, usize>> {
    let Reply::Integers(numbers) = reply else { return None };
    let mut numbers = numbers.iter().copied();
    let now = u64::try_from(numbers.next()?).ok()?;
    let mut given = Given::new();
    let mut corrupt = None;
    for (index, charge) in refund.charges.iter().enumerate() {
        let first = numbers.next()?;
        given.push(match charge.bucket.algorithm() {
            _ if first < 0 => {
                corrupt = corrupt.or(Some(index));
                0
            }
            Algorithm::TokenBucket(bucket) | Algorithm::LeakyBucket(LeakyBucket { bucket }) => {
                let (whole, fraction) = (u64::try_from(first).ok()?, u32::try_from(numbers.next()?).ok()?);
                let tat = Tat(Span { whole, fraction });
                bucket.measure(tat, now).used.min(charge.cost)
            }
            _ => u64::try_from(first).ok()?,
        });
    }
    Some(corrupt.map_or(Ok(given), Err))
}

fn read(algorithm: &Algorithm, now: Now, numbers: &mut impl Iterator<Item = i64>) -> Option<Seen> {
    let mut next = || numbers.next().and_then(|number| u64::try_from(number).ok());
    let small = |number: u64| u32::try_from(number).ok();
    Some(match algorithm {
        Algorithm::TokenBucket(_) | Algorithm::LeakyBucket(_) => {
            Seen::Bucket(Tat(Span { whole: next()?, fraction: small(next()?)? }))
        }
        Algorithm::FixedWindow(_) => Seen::Window(Window { end: next()?, count: small(next()?)? }),
        Algorithm::SlidingWindow(it) => {
            let end = (next()? + 2) * it.period_us;
            Seen::Pair(Pair { end, current: small(next()?)?, previous: small(next()?)? })
        }
        Algorithm::SlidingLog(_) | Algorithm::SlidingBuckets(_) | Algorithm::Concurrency(_) => {
            Seen::Tally(Tally {
                used: small(next()?)?,
                next_end: next()?,
                last_end: next()?,
                needed_end: next()?,
            })
        }
        Algorithm::Deny | Algorithm::Unlimited => algorithm.nothing(now),
    })
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_number_has_room_for_the_last_instant() {
        assert_eq!(digits(MAX_TIME_US), START_DIGITS);
        assert_eq!(digits(MAX_TIME_US / 60_000_000), 8);
        assert_eq!(digits(MAX_TIME_US / (1 << 50)), 1);
        assert_eq!(digits(0), 1);
    }

    #[test]
    fn a_script_has_the_parts_that_it_needs_and_no_more() {
        let only_bucket = Part::assemble(1 << Part::Bucket as usize, Part::DECIDE);
        assert!(only_bucket.contains("algorithms.t =") && !only_bucket.contains("function tally"));
        let all = Part::assemble((1 << Part::COUNT) - 1, Part::REFUND);
        for letter in ["t", "f", "k", "w", "g", "b", "c"] {
            assert!(all.contains(&format!("algorithms.{letter} =")), "{letter}");
        }
        assert_eq!(all.matches("function tally").count(), 1);
    }
}
