//! What a client is told: the header fields that go with a decision.
//!
//! The fields of `Draft8` are those of the IETF's draft-ietf-httpapi-ratelimit-headers 8 to 11
//! (structured lists of RFC 9651), `Draft7` and `Draft6` those of the revisions named so, and
//! `Retry-After` is that of RFC 9110, in whole seconds.

use std::fmt::Write;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::standing::Standing;
use crate::told::Told;
use crate::{Error, Result};

/// A family of header fields.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// `RateLimit-Policy: "5/minute";q=5;w=60` and `RateLimit: "5/minute";r=4;t=12`, all limits.
    Draft8,
    /// The same with a blank after each semicolon, as express-rate-limit writes it.
    Draft8Spaced,
    /// `RateLimit-Policy: 5;w=60` and `RateLimit: limit=5, remaining=4, reset=12`.
    Draft7,
    /// `RateLimit-Policy: 5;w=60`, `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`.
    Draft6,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, this in seconds from now.
    XRateLimit,
    /// The same, the reset as seconds since 1970.
    XRateLimitEpoch,
}

impl FromStr for Headers {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "draft-8" => Self::Draft8,
            "draft-8-spaced" => Self::Draft8Spaced,
            "draft-7" => Self::Draft7,
            "draft-6" => Self::Draft6,
            "x-ratelimit" => Self::XRateLimit,
            "x-ratelimit-epoch" => Self::XRateLimitEpoch,
            _ => {
                return Err(Error::argument(format!(
                    "the header family {text:?}: it must be draft-8, draft-8-spaced, draft-7, draft-6, x-ratelimit \
                     or x-ratelimit-epoch"
                )));
            }
        })
    }
}

/// How limits and clients are named in the fields of `Draft8`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Naming<'a> {
    /// In place of the limit's name, for a policy of one limit.
    pub policy_name: Option<&'a str>,
    /// A key whose hash is told as `pk`, so that a client sees which of his buckets is meant.
    pub partition_key: Option<&'a [u8]>,
}

/// The fields for a decision, names and values; on a refusal `Retry-After` (absent on never) and
/// `Cache-Control: no-store` with them. `unix_now` serves the families that tell a date.
pub fn headers(
    decision: Told<'_>,
    families: &[Headers],
    naming: &Naming<'_>,
    unix_now: SystemTime,
) -> Vec<(&'static str, String)> {
    let mut fields = Vec::with_capacity(families.len() * 4 + 2);
    // Where nobody decided there is nothing to tell of limits.
    let families = if decision.is_by_rule() { &[] } else { families };
    for family in families {
        match family {
            Headers::Draft8 => structured(decision, naming, ";", &mut fields),
            Headers::Draft8Spaced => structured(decision, naming, "; ", &mut fields),
            Headers::Draft7 => {
                let told = Older::of(decision);
                fields.push(("RateLimit-Policy", told.policy()));
                let Older { limit, remaining, reset, .. } = told;
                fields.push(("RateLimit", format!("limit={limit}, remaining={remaining}, reset={reset}")));
            }
            Headers::Draft6 => {
                let told = Older::of(decision);
                fields.push(("RateLimit-Policy", told.policy()));
                fields.push(("RateLimit-Limit", told.limit.to_string()));
                fields.push(("RateLimit-Remaining", told.remaining.to_string()));
                fields.push(("RateLimit-Reset", told.reset.to_string()));
            }
            Headers::XRateLimit | Headers::XRateLimitEpoch => {
                let told = Older::of(decision);
                let reset = match family {
                    Headers::XRateLimit => told.reset,
                    _ => seconds(since_1970(unix_now) + told.reset_after),
                };
                fields.push(("X-RateLimit-Limit", told.limit.to_string()));
                fields.push(("X-RateLimit-Remaining", told.remaining.to_string()));
                fields.push(("X-RateLimit-Reset", reset.to_string()));
            }
        }
    }
    if !decision.allowed() {
        if let Some(seconds) = retry_after_seconds(decision) {
            fields.push(("Retry-After", seconds.to_string()));
        }
        fields.push(("Cache-Control", "no-store".to_owned()));
    }
    fields
}

/// The value of `Retry-After`: whole seconds, rounded up, at least 1; none when allowed or never.
/// A place under a concurrency limit may be free at any time: try again in a second.
pub fn retry_after_seconds(decision: Told<'_>) -> Option<u64> {
    let wait = seconds(decision.retry_after()?).max(1);
    Some(if decision.decided().of().is_concurrency() { 1 } else { wait })
}

/// What the older families tell: of the limit that decided.
struct Older {
    limit: u64,
    remaining: u64,
    window: u64,
    reset: u64,
    reset_after: Duration,
}

impl Older {
    fn of(decision: Told<'_>) -> Self {
        let standing = decision.decided();
        let reset_after = decision.retry_after().unwrap_or(standing.reset_after);
        Self {
            limit: standing.limit,
            remaining: standing.remaining,
            window: window(&standing).unwrap_or(1),
            reset: seconds(reset_after),
            reset_after,
        }
    }

    fn policy(&self) -> String {
        format!("{};w={}", self.limit, self.window)
    }
}

fn structured(
    decision: Told<'_>,
    naming: &Naming<'_>,
    semicolon: &str,
    fields: &mut Vec<(&'static str, String)>,
) {
    let mut policies = String::new();
    let mut limits = String::new();
    let pk = naming.partition_key.map(partition);
    for (place, standing) in decision.standings().enumerate() {
        let Some(capacity) = told_capacity(&standing) else { continue };
        let name = quoted(naming.policy_name.unwrap_or_else(|| standing.name()));
        if !policies.is_empty() {
            policies.push_str(", ");
            limits.push_str(", ");
        }
        let _ = write!(policies, "{name}{semicolon}q={capacity}");
        if let Some(window) = window(&standing) {
            let _ = write!(policies, "{semicolon}w={window}");
        }
        if standing.of().is_concurrency() {
            let _ = write!(policies, "{semicolon}qu=\"concurrent-requests\"");
        }
        if let Some(pk) = &pk {
            let _ = write!(policies, "{semicolon}pk=:{pk}:");
        }
        let _ = write!(limits, "{name}{semicolon}r={}", standing.remaining);
        let decided = decision.limit_index().unwrap_or(0) == place;
        let until = decision.retry_after().filter(|_| decided).or(standing.next_after);
        if let Some(until) = until {
            let _ = write!(limits, "{semicolon}t={}", seconds(until));
        }
    }
    if !policies.is_empty() {
        fields.push(("RateLimit-Policy", policies));
        fields.push(("RateLimit", limits));
    }
}

/// The capacity to tell; none for what has no limit.
fn told_capacity(standing: &Standing<'_>) -> Option<u64> {
    let bounded = standing.of().period().is_some() || standing.limit == 0;
    bounded.then_some(standing.limit)
}

fn window(standing: &Standing<'_>) -> Option<u64> {
    standing.of().window().map(seconds)
}

/// The first 12 hexadecimal digits of a SHA-256, as a byte sequence, as express-rate-limit has it.
fn partition(key: &[u8]) -> String {
    let mut digits = String::with_capacity(12);
    for byte in &Sha256::digest(key)[..6] {
        let _ = write!(digits, "{byte:02x}");
    }
    STANDARD.encode(digits)
}

/// A structured field's string: printable ASCII, quotes and backslashes escaped.
fn quoted(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    text.push('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            ' '..='~' => text.push(c),
            _ => text.push('?'),
        }
    }
    text.push('"');
    text
}

fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limiter, ManualClock, Policy};

    fn fields(policy: &str, costs: &[u64], families: &[Headers], naming: &Naming<'_>) -> Vec<String> {
        let clock = ManualClock::new(1_000_500_000).unwrap();
        let limiter = Limiter::builder(Policy::parse(policy).unwrap()).clock(clock).build().unwrap();
        let mut last = None;
        for &cost in costs {
            last = Some(limiter.acquire("k", cost).unwrap());
        }
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_500);
        headers(last.unwrap().told(), families, naming, now)
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect()
    }

    fn plain(policy: &str, costs: &[u64], family: Headers) -> Vec<String> {
        fields(policy, costs, &[family], &Naming::default())
    }

    #[test]
    fn the_current_draft_lists_every_limit() {
        assert_eq!(
            plain("burst=5/minute; fixed_window: 100/hour", &[1], Headers::Draft8),
            [
                "RateLimit-Policy: \"burst\";q=5;w=60, \"fixed_window: 100/hour\";q=100;w=3600",
                "RateLimit: \"burst\";r=4;t=12, \"fixed_window: 100/hour\";r=99;t=2600",
            ]
        );
        assert_eq!(
            plain("5/minute", &[5, 2], Headers::Draft8),
            [
                "RateLimit-Policy: \"5/minute\";q=5;w=60",
                "RateLimit: \"5/minute\";r=0;t=24",
                "Retry-After: 24",
                "Cache-Control: no-store",
            ]
        );
    }

    #[test]
    fn each_algorithm_tells_its_window() {
        let policy = |text: &str| plain(text, &[1], Headers::Draft8);
        assert_eq!(
            policy("leaky_bucket: 2/second queue 9"),
            [
                "RateLimit-Policy: \"leaky_bucket: 2/second queue 9\";q=10;w=5",
                "RateLimit: \"leaky_bucket: 2/second queue 9\";r=9;t=1"
            ]
        );
        assert_eq!(policy("x=sliding_log: 2/minute")[0], "RateLimit-Policy: \"x\";q=2;w=60");
        assert_eq!(
            plain("c=concurrency: 2 for 30s", &[2, 1], Headers::Draft8),
            [
                "RateLimit-Policy: \"c\";q=2;qu=\"concurrent-requests\"",
                "RateLimit: \"c\";r=0;t=30",
                "Retry-After: 1",
                "Cache-Control: no-store",
            ]
        );
    }

    #[test]
    fn what_never_passes_has_no_retry_after() {
        let never = plain("5/minute", &[6], Headers::Draft8);
        assert_eq!(never[1], "RateLimit: \"5/minute\";r=5");
        assert_eq!(never[2..], ["Cache-Control: no-store"]);
        assert_eq!(
            plain("deny", &[1], Headers::Draft8)[..2],
            ["RateLimit-Policy: \"deny\";q=0", "RateLimit: \"deny\";r=0"]
        );
        assert!(plain("unlimited", &[1], Headers::Draft8).is_empty());
    }

    #[test]
    fn older_families_tell_the_limit_that_decided() {
        let policy = "fixed_window: 5/minute from first";
        assert_eq!(
            plain(policy, &[1], Headers::Draft7),
            ["RateLimit-Policy: 5;w=60", "RateLimit: limit=5, remaining=4, reset=60"]
        );
        assert_eq!(
            plain(policy, &[1], Headers::Draft6),
            [
                "RateLimit-Policy: 5;w=60",
                "RateLimit-Limit: 5",
                "RateLimit-Remaining: 4",
                "RateLimit-Reset: 60"
            ]
        );
        assert_eq!(
            plain(policy, &[1], Headers::XRateLimitEpoch),
            ["X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 4", "X-RateLimit-Reset: 1061"]
        );
        assert_eq!(
            plain(policy, &[5, 1], Headers::XRateLimit)[2..],
            ["X-RateLimit-Reset: 60", "Retry-After: 60", "Cache-Control: no-store"]
        );
    }

    #[test]
    fn names_are_escaped_and_keys_hashed() {
        let naming = Naming { policy_name: Some("a\"b\\c\u{e9}"), partition_key: Some(b"127.0.0.1") };
        assert_eq!(
            fields("fixed_window: 5/minute from first", &[1], &[Headers::Draft8Spaced], &naming),
            [
                "RateLimit-Policy: \"a\\\"b\\\\c?\"; q=5; w=60; pk=:MTJjYTE3YjQ5YWYy:",
                "RateLimit: \"a\\\"b\\\\c?\"; r=4; t=60",
            ]
        );
    }

    #[test]
    fn the_wait_is_rounded_up_and_at_least_a_second() {
        let wait = plain("1000/second", &[1000, 1], Headers::Draft8);
        assert!(wait.contains(&"Retry-After: 1".to_owned()), "{wait:?}");
    }
}
