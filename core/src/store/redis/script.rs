//! The script: put together from the parts that a call needs, its arguments and its answer.

use std::sync::OnceLock;

use redis::{Cmd, Value};
use smallvec::SmallVec;

use crate::algorithm::fixed_window::{Anchor, Window};
use crate::algorithm::interval::Span;
use crate::algorithm::leaky_bucket::LeakyBucket;
use crate::algorithm::sliding_window::Pair;
use crate::algorithm::token_bucket::Tat;
use crate::algorithm::{Algorithm, Seen, Tally};
use crate::clock::{MAX_TIME_US, Now, Time};
use crate::receipt::Lease;
use crate::store::charge::{Charge, Group, Mode, Outcome};

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

    /// The script that decides these groups.
    pub fn deciding(groups: &[Group<'_>]) -> &'static Self {
        static PROGRAMS: [OnceLock<Program>; 1 << Part::COUNT] =
            [const { OnceLock::new() }; 1 << Part::COUNT];
        let charges = groups.iter().flat_map(|group| &group.charges);
        let parts = charges.filter_map(|charge| Part::of(charge.bucket.algorithm()));
        let set = parts.fold(0, |set, part| set | 1 << part as usize);
        PROGRAMS[set].get_or_init(|| Self::new(Part::assemble(set)))
    }

    /// The script that ends leases.
    pub fn releasing() -> &'static Self {
        static PROGRAM: OnceLock<Program> = OnceLock::new();
        PROGRAM.get_or_init(|| Self::new(include_str!("lua/release.lua").to_owned()))
    }
}

/// One algorithm's part of the deciding script.
#[derive(Clone, Copy)]
enum Part {
    Bucket,
    Window,
    SlidingWindow,
    SlidingLog,
    SlidingBuckets,
    Concurrency,
}

impl Part {
    const COUNT: usize = 6;
    const FRAME: &str = include_str!("lua/decide.lua");
    const TALLY: &str = include_str!("lua/tally.lua");
    const TEXTS: [&str; Self::COUNT] = [
        include_str!("lua/bucket.lua"),
        include_str!("lua/window.lua"),
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
            Algorithm::FixedWindow(_) => Self::Window,
            Algorithm::SlidingWindow(_) => Self::SlidingWindow,
            Algorithm::SlidingLog(_) => Self::SlidingLog,
            Algorithm::SlidingBuckets(_) => Self::SlidingBuckets,
            Algorithm::Concurrency(_) => Self::Concurrency,
            Algorithm::Deny | Algorithm::Unlimited => return None,
        })
    }

    fn assemble(set: usize) -> String {
        let mut parts = String::new();
        if set & Self::TALLIED != 0 {
            parts.push_str(Self::TALLY);
        }
        for (part, text) in Self::TEXTS.iter().enumerate() {
            if set & 1 << part != 0 {
                parts.push_str(text);
            }
        }
        Self::FRAME.replace("--ALGORITHMS\n", &parts)
    }
}

/// What the script is to do with a group.
#[derive(Clone, Copy)]
enum Order {
    Ask = 0,
    Take = 1,
    /// Refuse, since the cost can never pass, and write back what is to be mended.
    Refuse = 2,
}

/// Adds the script's arguments behind its keys.
pub(super) fn arguments(command: &mut Cmd, groups: &[Group<'_>], leases: &[Lease], mode: Mode, time: Time) {
    match time.given() {
        Some(us) => command.arg(us).arg(GIVEN_MARGIN_MS),
        None => command.arg(-1).arg(MARGIN_MS),
    };
    for (group, &lease) in groups.iter().zip(leases) {
        let order = match mode {
            Mode::Peek => Order::Ask,
            Mode::Acquire if group.never_admitted() => Order::Refuse,
            Mode::Acquire => Order::Take,
        };
        command.arg(stored(group).count()).arg(order as u8);
        for charge in stored(group) {
            charge_arguments(command, charge, lease);
        }
    }
}

/// The charges that have a key.
pub(super) fn stored<'a, 'b>(group: &'b Group<'a>) -> impl Iterator<Item = &'b Charge<'a>> {
    group.charges.iter().filter(|charge| charge.bucket.algorithm().has_state())
}

fn charge_arguments(command: &mut Cmd, charge: &Charge<'_>, lease: Lease) {
    let algorithm = charge.bucket.algorithm();
    // A cost that can never pass is refused anyway; the script's numbers stay within the domain.
    let cost = charge.cost.min(algorithm.capacity());
    match algorithm {
        Algorithm::TokenBucket(bucket) | Algorithm::LeakyBucket(LeakyBucket { bucket }) => {
            let span = bucket.interval.times(cost);
            command.arg("t").arg(cost).arg(span.whole).arg(span.fraction);
            command.arg(bucket.full.whole).arg(bucket.full.fraction).arg(bucket.interval.q);
        }
        Algorithm::FixedWindow(it) => {
            let first = it.anchor == Anchor::First;
            let digits = if first { START_DIGITS } else { digits(MAX_TIME_US / it.period_us) };
            command.arg("f").arg(cost).arg(it.limit).arg(it.period_us).arg(first as u8).arg(digits);
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

/// The script's answer to one group.
pub(super) enum Answer {
    Decided(Outcome),
    /// The value of this stored charge is not one of ours.
    Corrupt(usize),
}

/// Reads the script's answers; none when they have another shape.
pub(super) fn answers(
    value: &Value,
    groups: &[Group<'_>],
    leases: &[Lease],
) -> Option<SmallVec<[Answer; 1]>> {
    let Value::Array(items) = value else { return None };
    let mut numbers = items.iter().map_while(|item| match item {
        Value::Int(number) => Some(*number),
        _ => None,
    });
    let now = u64::try_from(numbers.next()?).ok()?;
    let now = Now { steady: now, wall: now };
    let mut answers = SmallVec::new();
    for (group, &lease) in groups.iter().zip(leases) {
        let verdict = numbers.next()?;
        if verdict < 0 {
            answers.push(Answer::Corrupt(usize::try_from(-verdict - 1).ok()?));
            continue;
        }
        let mut seen = SmallVec::new();
        for charge in &group.charges {
            seen.push(read(charge.bucket.algorithm(), now, &mut numbers)?);
        }
        let admitted = verdict == 1 && !group.never_admitted();
        answers.push(Answer::Decided(Outcome { admitted, now, seen, lease }));
    }
    Some(answers)
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
            Seen::Tally(Tally { used: next()?, next_end: next()?, last_end: next()?, needed_end: next()? })
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
        let only_bucket = Part::assemble(1 << Part::Bucket as usize);
        assert!(only_bucket.contains("algorithms.t =") && !only_bucket.contains("function tally"));
        let all = Part::assemble((1 << Part::COUNT) - 1);
        for letter in ["t", "f", "w", "g", "b", "c"] {
            assert!(all.contains(&format!("algorithms.{letter} =")), "{letter}");
        }
        assert_eq!(all.matches("function tally").count(), 1);
    }
}
