//! Units of time, and numbers that are exact fractions.

use super::invalid;
use crate::Result;
use crate::algorithm::MAX_SPAN_US;

/// Units that the canonical text uses, largest first; more of them, where the word changes.
const CANONICAL: [(u64, &str, &str); 7] = [
    (WEEK, "week", "weeks"),
    (DAY, "day", "days"),
    (3_600_000_000, "hour", "hours"),
    (60_000_000, "minute", "minutes"),
    (1_000_000, "second", "seconds"),
    (1_000, "ms", "ms"),
    (1, "us", "us"),
];

pub(super) const DAY: u64 = 86_400_000_000;
pub(super) const WEEK: u64 = 7 * DAY;
pub(super) const MONTH: u64 = 30 * DAY;

/// Every word for a unit, in lower case.
pub(super) const WORDS: [&str; 24] = [
    "us", "ms", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes", "h", "hr",
    "hrs", "hour", "hours", "d", "day", "days", "w", "week", "weeks", "month", "year",
];

/// Microseconds of a unit.
pub(super) fn unit_us(word: &str) -> Option<u64> {
    Some(match word.to_ascii_lowercase().as_str() {
        "us" => 1,
        "ms" => 1_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000,
        "min" | "mins" | "minute" | "minutes" => 60_000_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000,
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => WEEK,
        "month" | "months" => MONTH,
        "year" | "years" => 365 * DAY,
        _ => return None,
    })
}

/// The canonical text of a period: the largest unit that divides it, the count 1 left out.
pub(super) fn period(period_us: u64) -> String {
    let text = span(period_us);
    text.strip_prefix("1 ").map(str::to_owned).unwrap_or(text)
}

/// The canonical text of a calendar's window.
#[cfg(feature = "calendar")]
pub(super) fn calendar(period_us: u64) -> &'static str {
    match period_us {
        DAY => "day",
        WEEK => "week",
        _ => "month",
    }
}

/// The canonical text of a stretch of time: the largest unit that divides it, and its count.
pub(super) fn span(period_us: u64) -> String {
    let fits = |&&(us, ..): &&(u64, &str, &str)| period_us.is_multiple_of(us);
    let (us, one, more) = CANONICAL.iter().find(fits).copied().unwrap_or((1, "us", "us"));
    match period_us / us {
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    }
}

/// A positive rational in lowest terms, from `5`, `0.5`, `1/3` or `1e-3`.
pub(crate) fn rational(text: &str) -> Result<(u64, u64)> {
    let fraction = match text.trim().split_once('/') {
        Some((above, below)) => decimal(above)
            .zip(decimal(below))
            .and_then(|((a, b), (c, d))| Some((a.checked_mul(d)?, b.checked_mul(c)?))),
        None => decimal(text.trim()),
    };
    let (above, below) = fraction.filter(|&(above, below)| above > 0 && below > 0).ok_or_else(|| {
        invalid(format!(
            "the refill rate {text:?}: it must be tokens a second as a positive number such as 5, 0.5, 1/3 or 1e-3"
        ))
    })?;
    let divisor = gcd(above, below);
    let word = |number: u128| u64::try_from(number / divisor).ok().filter(|&it| it <= MAX_SPAN_US);
    word(above).zip(word(below)).ok_or_else(|| {
        invalid(format!(
            "the refill rate {text:?}: as a fraction its terms must be at most 2^32-1 tokens and 2^50 microseconds"
        ))
    })
}

/// `DIGITS [. DIGITS] [e [+-] DIGITS]` as a fraction.
fn decimal(text: &str) -> Option<(u128, u128)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, decimals].concat();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let shift = exponent.checked_sub(i32::try_from(decimals.len()).ok()?)?;
    let number = digits.parse::<u128>().ok()?;
    let power = 10_u128.checked_pow(shift.unsigned_abs())?;
    if shift >= 0 { Some((number.checked_mul(power)?, 1)) } else { Some((number, power)) }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_a_length() {
        assert!(WORDS.iter().all(|word| unit_us(word).is_some()));
        assert_eq!(unit_us("MONTHS"), Some(2_592_000_000_000));
        assert_eq!(unit_us("m"), None);
    }

    #[test]
    fn rationals_are_exact() {
        assert_eq!(rational("5").unwrap(), (5, 1));
        assert_eq!(rational("0.5").unwrap(), (1, 2));
        assert_eq!(rational("2.50").unwrap(), (5, 2));
        assert_eq!(rational("1/3").unwrap(), (1, 3));
        assert_eq!(rational("0.5/1.5").unwrap(), (1, 3));
        assert_eq!(rational("1e-05").unwrap(), (1, 100_000));
        assert_eq!(rational("1.5e3").unwrap(), (1500, 1));
    }

    #[test]
    fn what_is_no_positive_number_is_an_error() {
        for bad in
            ["", "0", "-1", "a", "1/0", "1/", ".", "1e", "nan", "inf", "1e99", "1/2/3", "0x10", "1 000"]
        {
            assert!(rational(bad).is_err(), "{bad}");
        }
    }
}
