//! The script's arguments and its answer.

use redis::{Cmd, Value};

use crate::algorithm::fixed_window::{Anchor, FixedWindow, Window};
use crate::algorithm::interval::Span;
use crate::algorithm::token_bucket::{Tat, TokenBucket};
use crate::algorithm::{Algorithm, State};
use crate::clock::MAX_TIME_US;
use crate::store::{Request, States};

pub(super) const SOURCE: &str = include_str!("decide.lua");

/// What a key outlives its state by: a second of the server's clock, or a day where the time is
/// given, since a test may pause while its clock stands.
const MARGIN_MS: u64 = 1_000;
const GIVEN_MARGIN_MS: u64 = 86_400_000;

/// Digits of the start of a window that begins with a request: 2^52 has 16.
const START_DIGITS: usize = 16;

/// What the script is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Only read.
    Ask = 0,
    /// Take the cost if every limit admits it.
    Take = 1,
    /// Refuse, since the cost can never pass, and write back what came from the future.
    Refuse = 2,
}

impl Order {
    pub fn of(request: &Request<'_>) -> Self {
        match request.takes() {
            false => Self::Ask,
            true if request.policy.never_admits(request.cost) => Self::Refuse,
            true => Self::Take,
        }
    }
}

/// Adds the script's arguments behind its keys. Only a cost that is to be taken is sent: it fits
/// the script's numbers.
pub(super) fn arguments(command: &mut Cmd, request: &Request<'_>, order: Order) {
    match request.time.given() {
        Some(us) => command.arg(us).arg(order as u8).arg(GIVEN_MARGIN_MS),
        None => command.arg(-1).arg(order as u8).arg(MARGIN_MS),
    };
    let cost = if order == Order::Take { request.cost } else { 0 };
    for limit in request.policy.limits() {
        match limit.algorithm() {
            Algorithm::TokenBucket(bucket) => token_bucket(command, bucket, cost),
            Algorithm::FixedWindow(window) => fixed_window(command, window, cost),
            Algorithm::Deny | Algorithm::Unlimited => {}
        }
    }
}

fn token_bucket(command: &mut Cmd, bucket: &TokenBucket, cost: u64) {
    let cost = bucket.interval.times(cost);
    command.arg("t").arg(cost.whole).arg(cost.fraction);
    command.arg(bucket.full.whole).arg(bucket.full.fraction).arg(bucket.interval.q);
}

fn fixed_window(command: &mut Cmd, window: &FixedWindow, cost: u64) {
    let first = window.anchor == Anchor::First;
    let width = if first { START_DIGITS } else { digits(MAX_TIME_US / window.period_us) };
    command.arg("f").arg(cost).arg(window.limit).arg(window.period_us).arg(first as u8).arg(width);
}

/// The script's answer.
pub(super) enum Answer {
    /// The verdict, the server's time, and each limit's state.
    Decided { admitted: bool, now: u64, states: States },
    /// The value under the key of this index is not one of ours.
    Corrupt(usize),
}

/// Reads the script's answer; none when it has another shape.
pub(super) fn answer(value: &Value, request: &Request<'_>) -> Option<Answer> {
    let Value::Array(items) = value else { return None };
    let number = |index: usize| match items.get(index) {
        Some(Value::Int(number)) => Some(*number),
        _ => None,
    };
    let verdict = number(0)?;
    if verdict < 0 {
        return usize::try_from(-verdict - 1).ok().map(Answer::Corrupt);
    }
    let mut states = States::new();
    let mut at = 2;
    for limit in request.policy.limits() {
        if !limit.algorithm().has_state() {
            states.push(State::Fresh);
            continue;
        }
        let first = u64::try_from(number(at)?).ok()?;
        let second = u32::try_from(number(at + 1)?).ok()?;
        states.push(match limit.algorithm() {
            Algorithm::TokenBucket(_) => State::TokenBucket(Tat(Span { whole: first, fraction: second })),
            _ => State::FixedWindow(Window { end: first, count: second }),
        });
        at += 2;
    }
    Some(Answer::Decided { admitted: verdict == 1, now: u64::try_from(number(1)?).ok()?, states })
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
}
