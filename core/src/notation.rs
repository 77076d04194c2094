//! The notation of limits: its text, and the canonical text of a limit.
//!
//! ```text
//! policy    = limit *((";" / "," / "|") limit)
//! limit     = [NAME "="] (rate / "concurrency:" COUNT "for" [N] UNIT / "deny" / "unlimited")
//! rate      = [ALGORITHM ":"] COUNT ("/" / "per") [N] UNIT *option
//! ALGORITHM = "token_bucket" / "leaky_bucket" / "fixed_window" / "sliding_window" / "sliding_log"
//! option    = "burst" N (token_bucket)  /  "queue" N (leaky_bucket)  /  "buckets" K (sliding_log)
//!           / "from" "first"  /  "in" ZONE (fixed_window; one day, week or month)
//! ```

use crate::algorithm::Algorithm;
use crate::algorithm::fixed_window::{Anchor, Windows};
use crate::limit::Limit;
use crate::{Error, ErrorKind, Result};

mod scan;
mod units;

use scan::Scanner;
pub(crate) use units::rational;

const ALGORITHMS: [&str; 6] =
    ["token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "concurrency"];

/// Reads exactly one limit.
pub(crate) fn parse_limit(text: &str) -> Result<Limit> {
    let mut scanner = Scanner::new(text);
    let limit = limit(&mut scanner)?;
    scanner.end("one limit is expected here")?;
    Ok(limit)
}

/// Reads the limits of a policy.
pub(crate) fn parse_policy(text: &str) -> Result<Vec<Limit>> {
    let mut scanner = Scanner::new(text);
    let mut limits = vec![limit(&mut scanner)?];
    while scanner.accept_any(&[";", ",", "|"]) {
        limits.push(limit(&mut scanner)?);
    }
    scanner.end("between limits write ; or , or |")?;
    Ok(limits)
}

fn limit(scanner: &mut Scanner<'_>) -> Result<Limit> {
    let name = scanner.name_before("=");
    let algorithm = scanner.word_before(":").map(str::to_ascii_lowercase);
    let start = scanner.mark();
    let read: fn(&mut Scanner<'_>) -> Result<Limit> = match algorithm.as_deref() {
        None if scanner.accept_word("deny") => |_| Ok(Limit::deny()),
        None if scanner.accept_word("unlimited") => |_| Ok(Limit::unlimited()),
        None | Some("token_bucket") => token_bucket,
        Some("leaky_bucket") => leaky_bucket,
        Some("fixed_window") => fixed_window,
        Some("sliding_window") => sliding_window,
        Some("sliding_log") => sliding_log,
        Some("concurrency") => concurrency,
        Some(unknown) => {
            return Err(scanner.error_before(
                &format!("unknown algorithm {unknown:?}"),
                &ALGORITHMS,
                unknown,
            ));
        }
    };
    let made = read(scanner).map_err(|error| scanner.locate(start, error))?;
    match name {
        Some(name) => made.with_name(name).map_err(|error| scanner.locate(start, error)),
        None => Ok(made),
    }
}

fn token_bucket(scanner: &mut Scanner<'_>) -> Result<Limit> {
    let (count, period_us) = rate(scanner)?;
    let capacity = scanner.number_option("burst", "token_bucket", "how many a full bucket holds")?;
    Limit::token_bucket_us(count, period_us, capacity.unwrap_or(count))
}

fn leaky_bucket(scanner: &mut Scanner<'_>) -> Result<Limit> {
    let (count, period_us) = rate(scanner)?;
    let queue = scanner.number_option("queue", "leaky_bucket", "how many may wait")?;
    Limit::leaky_bucket_us(count, period_us, queue.unwrap_or(0))
}

fn sliding_window(scanner: &mut Scanner<'_>) -> Result<Limit> {
    let (limit, period_us) = rate(scanner)?;
    scanner.option(&[], "sliding_window")?;
    Limit::sliding_window_us(limit, period_us)
}

fn sliding_log(scanner: &mut Scanner<'_>) -> Result<Limit> {
    let (limit, period_us) = rate(scanner)?;
    let buckets = scanner.number_option("buckets", "sliding_log", "how many counters a period has")?;
    Limit::sliding_log_us(limit, period_us, buckets)
}

fn fixed_window(scanner: &mut Scanner<'_>) -> Result<Limit> {
    let (limit, period_us) = rate(scanner)?;
    let mut made = None;
    while let Some(option) = scanner.option(&["from", "in"], "fixed_window")? {
        let next = match option {
            "in" => calendar_window(scanner, limit, period_us)?,
            _ => {
                scanner.expect_word("first")?;
                Limit::fixed_window_us(limit, period_us, Anchor::First)?
            }
        };
        if made.replace(next).is_some() {
            return Err(scanner.error_at_last("its windows are said twice: write from first, or in ZONE"));
        }
    }
    made.map_or_else(|| Limit::fixed_window_us(limit, period_us, Anchor::Clock), Ok)
}

#[cfg(feature = "calendar")]
fn calendar_window(scanner: &mut Scanner<'_>, limit: u64, period_us: u64) -> Result<Limit> {
    use crate::algorithm::calendar::{Calendar, Unit, Zone};

    let unit = match period_us {
        units::DAY => Unit::Day,
        units::WEEK => Unit::Week,
        units::MONTH => Unit::Month,
        _ => return Err(scanner.error_at_last("a calendar has windows of one day, one week or one month")),
    };
    let name = scanner.zone();
    let Some(zone) = Zone::named(name) else {
        return Err(scanner.error_at_last(&format!(
            "no time zone {name:?}: write a name of the IANA database such as UTC or Africa/Cairo"
        )));
    };
    Limit::calendar_window(limit, period_us, Calendar { unit, zone })
}

#[cfg(not(feature = "calendar"))]
fn calendar_window(scanner: &mut Scanner<'_>, _: u64, _: u64) -> Result<Limit> {
    Err(Error::unsupported(format!("in {:?}: this build lacks the feature \"calendar\"", scanner.text())))
}

fn concurrency(scanner: &mut Scanner<'_>) -> Result<Limit> {
    let limit = scanner.number("how many may be in flight")?;
    scanner.expect_word("for")?;
    let expires_us = scanner.period()?;
    scanner.option(&[], "concurrency")?;
    Limit::concurrency_us(limit, expires_us)
}

/// `COUNT ("/" / "per") [N] UNIT`, as a count and a period in microseconds.
fn rate(scanner: &mut Scanner<'_>) -> Result<(u64, u64)> {
    let count = scanner.number("a count such as 100")?;
    if scanner.accept_any(&["."]) {
        return Err(
            scanner.error_at_last("a count is a whole number; for 1.5 a second write 3 per 2 seconds")
        );
    }
    if !scanner.accept_any(&["/"]) {
        scanner
            .expect_word("per")
            .map_err(|_| scanner.error_here("expected \"/\" or \"per\" after the count"))?;
    }
    Ok((count, scanner.period()?))
}

/// The canonical text of a limit; it parses to the same limit.
pub(crate) fn canonical(limit: &Limit) -> String {
    let body = match limit.algorithm() {
        Algorithm::TokenBucket(bucket) => {
            let rate = rate_text("", bucket.count, bucket.period_us);
            match bucket.capacity {
                capacity if capacity == bucket.count => rate,
                capacity => format!("{rate} burst {capacity}"),
            }
        }
        Algorithm::LeakyBucket(leaky) => {
            let rate = rate_text("leaky_bucket: ", leaky.bucket.count, leaky.bucket.period_us);
            if leaky.queue() == 0 { rate } else { format!("{rate} queue {}", leaky.queue()) }
        }
        Algorithm::FixedWindow(window) => {
            let rate = rate_text("fixed_window: ", window.limit, window.period_us);
            match window.windows {
                Windows::Clock => rate,
                Windows::First => format!("{rate} from first"),
                #[cfg(feature = "calendar")]
                Windows::Calendar(calendar) => format!(
                    "fixed_window: {}/{} in {}",
                    window.limit,
                    units::calendar(window.period_us),
                    calendar.zone.name()
                ),
            }
        }
        Algorithm::SlidingWindow(window) => rate_text("sliding_window: ", window.limit, window.period_us),
        Algorithm::SlidingLog(log) => rate_text("sliding_log: ", log.limit, log.period_us),
        Algorithm::SlidingBuckets(log) => {
            format!("{} buckets {}", rate_text("sliding_log: ", log.limit, log.period_us), log.buckets)
        }
        Algorithm::Concurrency(it) => format!("concurrency: {} for {}", it.limit, units::span(it.expires_us)),
        Algorithm::Deny => "deny".to_owned(),
        Algorithm::Unlimited => "unlimited".to_owned(),
    };
    match limit.given_name() {
        Some(name) => format!("{name}={body}"),
        None => body,
    }
}

fn rate_text(algorithm: &str, count: u64, period_us: u64) -> String {
    format!("{algorithm}{count}/{}", units::period(period_us))
}

/// The known word nearest to `word`, when it is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|&candidate| (distance(word, candidate), candidate))
        .min()
        .filter(|&(distance, candidate)| distance * 2 <= candidate.len())
        .map(|(_, candidate)| candidate)
}

/// The number of single-character edits between two words.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[row.len() - 1]
}

/// An error of the notation.
fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidLimit, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_limit_has_one_canonical_text() {
        for (text, canonical) in [
            ("5/minute", "5/minute"),
            ("5 per 60 seconds", "5/minute"),
            ("5 PER Minute", "5/minute"),
            ("5/60s", "5/minute"),
            ("10 per 15 minutes", "10/15 minutes"),
            ("100/s burst 300", "100/second burst 300"),
            ("100/s burst 100", "100/second"),
            ("token_bucket: 1/week", "1/week"),
            ("1000/month", "1000/30 days"),
            ("1/year", "1/365 days"),
            ("7/1500ms", "7/1500 ms"),
            ("7/us", "7/us"),
            ("api.v1=fixed_window:10/min from first", "api.v1=fixed_window: 10/minute from first"),
            (" fixed_window : 2 per 2 hrs ", "fixed_window: 2/2 hours"),
            ("leaky_bucket: 50/s queue 20", "leaky_bucket: 50/second queue 20"),
            ("Leaky_Bucket: 50/s queue 0", "leaky_bucket: 50/second"),
            ("sliding_window: 9 per day", "sliding_window: 9/day"),
            ("sliding_log: 5/min", "sliding_log: 5/minute"),
            ("x=sliding_log: 5/min BUCKETS 6", "x=sliding_log: 5/minute buckets 6"),
            ("concurrency: 20 for 30s", "concurrency: 20 for 30 seconds"),
            ("concurrency: 20 for 60s", "concurrency: 20 for 1 minute"),
            ("concurrency: 1 for hour", "concurrency: 1 for 1 hour"),
            ("deny", "deny"),
            ("free=unlimited", "free=unlimited"),
        ] {
            let limit = parse_limit(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(limit.to_string(), canonical, "{text}");
            assert_eq!(parse_limit(canonical).unwrap(), limit, "{canonical}");
        }
    }

    #[test]
    fn what_is_not_the_notation_is_an_error_that_points_at_the_place() {
        for (text, part) in [
            ("", "at the end"),
            ("5", "at the end"),
            ("5/", "at the end"),
            ("5/minte", "character 3 (\"minte\"): unknown unit; did you mean \"minute\"?"),
            ("5/m", "min or month"),
            ("0/second", "limit of 0"),
            ("-5/second", "character 1"),
            ("5.5/second", "character 2"),
            ("99999999999999999999/s", "99999999999999999999"),
            ("4294967296/s", "4294967296"),
            ("5/0 s", "period of 0"),
            ("5/second burst", "at the end"),
            ("5/second burst 0", "capacity of 0"),
            ("5/second burst 7 burst 8", "twice"),
            ("5/second from first", "from"),
            ("5/second burts 3", "did you mean \"burst\"?"),
            ("fixed_window: 5/second burst 3", "burst"),
            ("fixed_window: 5/second from last", "first"),
            ("fixed-window: 5/second", "did you mean \"fixed_window\"?"),
            ("gcra: 5/second", "one of token_bucket, leaky_bucket"),
            ("5/fortnight", "one of us, ms,"),
            ("1.5/second", "character 2 (\".\"): a count is a whole number"),
            ("fixd_window: 5/second", "did you mean \"fixed_window\"?"),
            ("leaky_bucket: 5/second burst 3", "burst"),
            ("sliding_window: 5/second queue 3", "sliding_window has no options"),
            ("sliding_log: 5/second buckets 7", "7 buckets"),
            ("sliding_log: 5/second bucket 5", "did you mean \"buckets\"?"),
            ("sliding_logs: 5/second", "did you mean \"sliding_log\"?"),
            ("concurrency: 5/second", "expected \"for\""),
            ("concurrency: 0 for 3 s", "limit of 0"),
            ("concurrency: 5", "at the end"),
            ("deny 5/second", "character 6"),
            ("5/second 6", "character 10"),
            ("5/second; 6/minute", "one limit"),
            ("a b=5/second", "character 1"),
            ("=5/second", "character 1"),
            ("5/second\0", "character 9"),
            ("5/секунда", "character 3"),
            ("100000/year burst 4294967295", "capacity of 4294967295"),
        ] {
            let error = parse_limit(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::InvalidLimit, "{text}: {error}");
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    #[test]
    #[cfg(feature = "calendar")]
    fn calendar_windows() {
        for (text, canonical) in [
            ("fixed_window: 10000/month in Africa/Cairo", "fixed_window: 10000/month in Africa/Cairo"),
            ("fixed_window: 10/d in utc", "fixed_window: 10/day in UTC"),
            (
                "q=fixed_window: 10 per 1 week in america/new_york",
                "q=fixed_window: 10/week in America/New_York",
            ),
            ("fixed_window: 10/7 days in Etc/GMT+3; 5/minute", "fixed_window: 10/week in Etc/GMT+3"),
        ] {
            let limits = parse_policy(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(limits[0].to_string(), canonical);
            assert_eq!(parse_limit(canonical).unwrap(), limits[0]);
        }
        for (text, part) in [
            ("fixed_window: 10/month in Mars/Olympus", "no time zone \"Mars/Olympus\""),
            ("fixed_window: 10/month in ../../etc/passwd", "no time zone \"../../etc/passwd\""),
            ("fixed_window: 10/month in", "at the end"),
            ("fixed_window: 10/2 months in UTC", "one day, one week or one month"),
            ("fixed_window: 10/hour in UTC", "one day, one week or one month"),
            ("fixed_window: 10/day in UTC from first", "twice"),
            ("10/day in UTC", "no option of token_bucket"),
        ] {
            let error = parse_limit(text).expect_err(text);
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_policy_is_a_list() {
        for text in ["1000/hour; 20000/day", "1000/hour,20000/day", "1000 per hour | 20000 per day"] {
            assert_eq!(parse_policy(text).unwrap().len(), 2, "{text}");
        }
        assert!(parse_policy("5/minute;").is_err());
        assert!(parse_policy("5/minute 6/hour").unwrap_err().to_string().contains(';'));
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("minte", "minute"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(nearest("xyz", &["burst"]), None);
    }
}
