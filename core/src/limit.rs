//! A limit: an algorithm with its numbers, checked when it is made.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "calendar")]
use crate::algorithm::calendar::Calendar;
use crate::algorithm::concurrency::Concurrency;
#[cfg(feature = "calendar")]
use crate::algorithm::fixed_window::Windows;
use crate::algorithm::fixed_window::{Anchor, FixedWindow};
use crate::algorithm::leaky_bucket::LeakyBucket;
use crate::algorithm::sliding_buckets::SlidingBuckets;
use crate::algorithm::sliding_log::SlidingLog;
use crate::algorithm::sliding_window::SlidingWindow;
use crate::algorithm::token_bucket::TokenBucket;
use crate::algorithm::{Algorithm, MAX_SPAN_US};
use crate::clock::Now;
use crate::once::Once;
use crate::{Error, Result, duration, notation};

/// The largest count and capacity.
pub(crate) const MAX_COUNT: u64 = u32::MAX as u64;
const MAX_NAME_BYTES: usize = 64;
const MAX_SCOPE_BYTES: usize = 256;

/// The most sub-windows of a log in buckets.
const MAX_BUCKETS: u64 = 1024;

/// An algorithm with its numbers, e.g. `100/second burst 300`.
///
/// Counts and capacities are 1 to 2^32-1, periods whole microseconds from 1 to 2^50, and an empty
/// bucket must be full again within 2^50 microseconds (35 years). Numbers outside are refused here,
/// so that no arithmetic can overflow later.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Limit {
    algorithm: Algorithm,
    name: Option<Arc<str>>,
    scope: Option<Arc<str>>,
    canonical: Arc<str>,
}

impl Limit {
    /// Reads one limit in the notation, e.g. `5/minute` or `login=fixed_window: 10/minute from first`.
    ///
    /// # Errors
    /// `invalid_limit` that points at the place, and `unsupported` for what a later release brings.
    pub fn parse(text: &str) -> Result<Self> {
        notation::parse_limit(text)
    }

    /// A token bucket: `limit` tokens flow in each `per` (to the nearest microsecond), and at most
    /// `limit` wait in it; see [`with_capacity`](Self::with_capacity).
    ///
    /// # Errors
    /// `invalid_limit` for numbers outside the domain.
    pub fn token_bucket(limit: u64, per: Duration) -> Result<Self> {
        Self::token_bucket_us(limit, per_us(per)?, limit)
    }

    /// A token bucket by its capacity and the tokens that flow in a second, as exact text:
    /// `5`, `0.5`, `1/3`, `1e-3`.
    ///
    /// # Errors
    /// `invalid_limit` for numbers outside the domain and for text that is no number.
    pub fn token_bucket_refilled(capacity: u64, refill_rate: &str) -> Result<Self> {
        let (count, seconds) = notation::rational(refill_rate)?;
        let period_us = seconds.checked_mul(1_000_000).ok_or_else(|| too_long(seconds))?;
        Self::token_bucket_us(count, period_us, capacity)
    }

    /// The same token bucket with another capacity, the first request included.
    ///
    /// # Errors
    /// `invalid_limit` for a capacity outside the domain, or when it is no token bucket.
    pub fn with_capacity(self, capacity: u64) -> Result<Self> {
        let Algorithm::TokenBucket(bucket) = self.algorithm else {
            return Err(Error::limit(format!(
                "a capacity of {capacity} for \"{self}\": only a token bucket has one"
            )));
        };
        let made = Self::token_bucket_us(bucket.count, bucket.period_us, capacity)?;
        Ok(Self { name: self.name, scope: self.scope, ..made }.renamed())
    }

    /// A leaky bucket: admitted requests leave at `limit` in each `per`, and at most `queue` (0 to
    /// 2^32-2) wait besides the one being served. A decision tells how long a request waits.
    ///
    /// # Errors
    /// `invalid_limit` for numbers outside the domain.
    pub fn leaky_bucket(limit: u64, per: Duration, queue: u64) -> Result<Self> {
        Self::leaky_bucket_us(limit, per_us(per)?, queue)
    }

    /// A fixed window: at most `limit` in each window of `per` (to the nearest microsecond).
    ///
    /// # Errors
    /// `invalid_limit` for numbers outside the domain.
    pub fn fixed_window(limit: u64, per: Duration, anchor: Anchor) -> Result<Self> {
        Self::fixed_window_us(limit, per_us(per)?, anchor)
    }

    /// A sliding window: `limit` in `per`, the previous window weighted by its overlap.
    ///
    /// # Errors
    /// `invalid_limit` for numbers outside the domain.
    pub fn sliding_window(limit: u64, per: Duration) -> Result<Self> {
        Self::sliding_window_us(limit, per_us(per)?)
    }

    /// A sliding log: never more than `limit` in any `per`; see [`with_buckets`](Self::with_buckets).
    ///
    /// # Errors
    /// `invalid_limit` for numbers outside the domain.
    pub fn sliding_log(limit: u64, per: Duration) -> Result<Self> {
        Self::sliding_log_us(limit, per_us(per)?, None)
    }

    /// The same sliding log with `buckets` counters (1 to 1024, dividing the period) in place of an
    /// entry for each request: still never more than the limit in any period, but a refusal may last
    /// a bucket's width longer.
    ///
    /// # Errors
    /// `invalid_limit` when they don't divide the period, or when it is no sliding log.
    pub fn with_buckets(self, buckets: u64) -> Result<Self> {
        let (limit, period_us) = match self.algorithm {
            Algorithm::SlidingLog(log) => (log.limit, log.period_us),
            Algorithm::SlidingBuckets(log) => (log.limit, log.period_us),
            _ => {
                return Err(Error::limit(format!(
                    "{buckets} buckets for \"{self}\": only a sliding log has them"
                )));
            }
        };
        let made = Self::sliding_log_us(limit, period_us, Some(buckets))?;
        Ok(Self { name: self.name, scope: self.scope, ..made }.renamed())
    }

    /// At most `limit` in flight; a lease that is never released ends after `expires`.
    ///
    /// # Errors
    /// `invalid_limit` for numbers outside the domain.
    pub fn concurrency(limit: u64, expires: Duration) -> Result<Self> {
        let expires =
            duration::to_micros("expires", expires).map_err(|error| Error::limit(error.to_string()))?;
        Self::concurrency_us(limit, expires)
    }

    /// Refuses everything: never, limit 0, remaining 0.
    pub fn deny() -> Self {
        Self::of(Algorithm::Deny)
    }

    /// Admits everything and stores nothing; its limit is shown as 2^53, the largest cost.
    pub fn unlimited() -> Self {
        Self::of(Algorithm::Unlimited)
    }

    /// What stands in a policy's place where the key is blocked.
    pub(crate) fn block() -> &'static Self {
        static BLOCK: Once<Limit> = Once::new();
        BLOCK.get_or_make(|| Self { name: Some("block".into()), ..Self::deny() }.renamed())
    }

    /// The same limit under a name: it then keeps what was used when its numbers change.
    ///
    /// # Errors
    /// `invalid_limit` for a name that is empty, over 64 bytes, or has other than `A-Z a-z 0-9 . _ -`.
    pub fn with_name(self, name: &str) -> Result<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(allowed) {
            return Err(Error::limit(format!(
                "the name {name:?}: a limit's name has 1 to {MAX_NAME_BYTES} characters of A-Z a-z 0-9 . _ -"
            )));
        }
        Ok(Self { name: Some(name.into()), ..self }.renamed())
    }

    /// The same limit with buckets of its own for one route: limits of different scopes never share.
    ///
    /// # Errors
    /// `invalid_limit` for a scope that is empty or over 256 bytes.
    pub fn with_scope(self, scope: &str) -> Result<Self> {
        if scope.is_empty() || scope.len() > MAX_SCOPE_BYTES {
            return Err(Error::limit(format!(
                "a scope of {} bytes: it must have 1 to {MAX_SCOPE_BYTES}",
                scope.len()
            )));
        }
        Ok(Self { scope: Some(scope.into()), ..self })
    }

    /// Its name, else its canonical notation.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.canonical)
    }

    /// The largest cost that can ever pass: a bucket's capacity, a window's limit.
    pub fn capacity(&self) -> u64 {
        self.algorithm.capacity()
    }

    /// The period of its count, or a lease's life; none for `deny` and `unlimited`.
    pub fn period(&self) -> Option<Duration> {
        match self.algorithm {
            Algorithm::TokenBucket(it) => Some(it.period_us),
            Algorithm::LeakyBucket(it) => Some(it.bucket.period_us),
            Algorithm::FixedWindow(it) => Some(it.period_us),
            Algorithm::SlidingWindow(it) => Some(it.period_us),
            Algorithm::SlidingLog(it) => Some(it.period_us),
            Algorithm::SlidingBuckets(it) => Some(it.period_us),
            Algorithm::Concurrency(it) => Some(it.expires_us),
            Algorithm::Deny | Algorithm::Unlimited => None,
        }
        .map(Duration::from_micros)
    }

    /// The longest that an admitted request of one unit is held: a leaky bucket's full queue.
    pub fn longest_delay(&self) -> Duration {
        match self.algorithm {
            Algorithm::LeakyBucket(it) => Duration::from_micros(it.longest_delay()),
            _ => Duration::ZERO,
        }
    }

    /// Whether it counts what is in flight, and not what came in a time: then it takes leases.
    pub fn is_concurrency(&self) -> bool {
        matches!(self.algorithm, Algorithm::Concurrency(_))
    }

    /// From empty to full, or the whole window at that instant: the `w` of a rate limit header.
    pub(crate) fn window(&self, now: Now) -> Option<Duration> {
        match self.algorithm {
            Algorithm::FixedWindow(window) => {
                // A month has as many days as it has.
                let (start, end) = window.window(now.wall);
                Some(Duration::from_micros(end - start)).filter(|_| self.period().is_some())
            }
            Algorithm::TokenBucket(bucket) | Algorithm::LeakyBucket(LeakyBucket { bucket }) => {
                Some(Duration::from_micros(bucket.full.whole + u64::from(bucket.full.fraction > 0)))
            }
            Algorithm::Concurrency(_) => None,
            _ => self.period(),
        }
    }

    pub(crate) fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// The share of one of `instances`, under the name of the whole.
    pub(crate) fn share(&self, instances: u64) -> Self {
        Self { algorithm: self.algorithm.share(instances), ..self.clone() }
    }

    /// The same limit with buckets of its own, which no route has.
    pub(crate) fn apart(&self) -> Self {
        let scope = format!("{}\0own", self.scope.as_deref().unwrap_or_default());
        Self { scope: Some(scope.into()), ..self.clone() }
    }

    /// Whether no wait helps a request of this cost.
    pub(crate) fn never_admits(&self, cost: u64) -> bool {
        cost > self.capacity() || self.algorithm == Algorithm::Deny
    }

    pub(crate) fn given_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(crate) fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    pub(crate) fn token_bucket_us(count: u64, period_us: u64, capacity: u64) -> Result<Self> {
        check_count("limit", count)?;
        check_count("capacity", capacity)?;
        check_period(period_us)?;
        TokenBucket::new(count, period_us, capacity).map(|it| Self::of(Algorithm::TokenBucket(it)))
    }

    pub(crate) fn fixed_window_us(limit: u64, period_us: u64, anchor: Anchor) -> Result<Self> {
        check_count("limit", limit)?;
        check_period(period_us)?;
        let window = FixedWindow { limit, period_us, windows: anchor.into() };
        Ok(Self::of(Algorithm::FixedWindow(window)))
    }

    /// Windows of a calendar: `day`, `week` or `month` in a zone.
    #[cfg(feature = "calendar")]
    pub(crate) fn calendar_window(limit: u64, period_us: u64, calendar: Calendar) -> Result<Self> {
        check_count("limit", limit)?;
        let window = FixedWindow { limit, period_us, windows: Windows::Calendar(calendar) };
        Ok(Self::of(Algorithm::FixedWindow(window)))
    }

    pub(crate) fn leaky_bucket_us(count: u64, period_us: u64, queue: u64) -> Result<Self> {
        check_count("limit", count)?;
        check_period(period_us)?;
        if queue >= MAX_COUNT {
            return Err(Error::limit(format!(
                "a queue of {queue}: it must be 0 to {} (2^32-2)",
                MAX_COUNT - 1
            )));
        }
        let bucket = TokenBucket::new(count, period_us, queue + 1)?;
        Ok(Self::of(Algorithm::LeakyBucket(LeakyBucket { bucket })))
    }

    pub(crate) fn sliding_window_us(limit: u64, period_us: u64) -> Result<Self> {
        check_count("limit", limit)?;
        check_period(period_us)?;
        Ok(Self::of(Algorithm::SlidingWindow(SlidingWindow { limit, period_us })))
    }

    pub(crate) fn sliding_log_us(limit: u64, period_us: u64, buckets: Option<u64>) -> Result<Self> {
        check_count("limit", limit)?;
        check_period(period_us)?;
        let Some(buckets) = buckets else {
            return Ok(Self::of(Algorithm::SlidingLog(SlidingLog { limit, period_us })));
        };
        if !(1..=MAX_BUCKETS).contains(&buckets) || !period_us.is_multiple_of(buckets) {
            return Err(Error::limit(format!(
                "{buckets} buckets for a period of {period_us} microseconds: \
                 it must be 1 to {MAX_BUCKETS}, and divide the period"
            )));
        }
        Ok(Self::of(Algorithm::SlidingBuckets(SlidingBuckets { limit, period_us, buckets })))
    }

    pub(crate) fn concurrency_us(limit: u64, expires_us: u64) -> Result<Self> {
        check_count("limit", limit)?;
        check_period(expires_us)?;
        Ok(Self::of(Algorithm::Concurrency(Concurrency { limit, expires_us })))
    }

    fn of(algorithm: Algorithm) -> Self {
        Self { algorithm, name: None, scope: None, canonical: "".into() }.renamed()
    }

    fn renamed(mut self) -> Self {
        self.canonical = notation::canonical(&self).into();
        self
    }
}

impl FromStr for Limit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// The canonical notation: the same text in every language, and it parses to the same limit.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical)
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Some(scope) => write!(f, "Limit({self}, scope {scope:?})"),
            None => write!(f, "Limit({self})"),
        }
    }
}

fn per_us(per: Duration) -> Result<u64> {
    duration::to_micros("per", per).map_err(|error| Error::limit(error.to_string()))
}

fn check_count(what: &str, count: u64) -> Result<()> {
    match count {
        1..=MAX_COUNT => Ok(()),
        0 => Err(Error::limit(format!(
            "a {what} of 0: it must be 1 to {MAX_COUNT}; to refuse everything write \"deny\""
        ))),
        _ => Err(Error::limit(format!("a {what} of {count}: it must be 1 to {MAX_COUNT} (2^32-1)"))),
    }
}

fn check_period(period_us: u64) -> Result<()> {
    match period_us {
        1..=MAX_SPAN_US => Ok(()),
        0 => Err(Error::limit("a period of 0: it must be at least one microsecond")),
        _ => Err(Error::limit(format!(
            "a period of {period_us} microseconds: at most {MAX_SPAN_US} (2^50, 35 years) are possible"
        ))),
    }
}

fn too_long(seconds: u64) -> Error {
    Error::limit(format!("a period of {seconds} seconds: at most 2^50 microseconds (35 years) are possible"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn constructors_and_notation_make_the_same_limit() {
        let same = |made: Limit, text: &str| assert_eq!(made, Limit::parse(text).unwrap(), "{text}");
        same(Limit::token_bucket(5, MINUTE).unwrap(), "5 per 60 seconds");
        same(Limit::token_bucket_refilled(20, "5").unwrap(), "5/second burst 20");
        same(Limit::token_bucket_refilled(20, "0.5").unwrap(), "1 per 2 seconds burst 20");
        same(Limit::token_bucket_refilled(20, "1/3").unwrap(), "1/3s burst 20");
        same(Limit::leaky_bucket(50, MINUTE, 20).unwrap(), "leaky_bucket: 50/minute queue 20");
        same(Limit::sliding_window(50, MINUTE).unwrap(), "sliding_window: 50/minute");
        same(Limit::sliding_log(50, MINUTE).unwrap(), "sliding_log: 50/minute");
        same(
            Limit::sliding_log(50, MINUTE).unwrap().with_buckets(10).unwrap(),
            "sliding_log: 50/minute buckets 10",
        );
        same(Limit::concurrency(20, MINUTE).unwrap(), "concurrency: 20 for 60 s");
        same(
            Limit::fixed_window(5, MINUTE, Anchor::First).unwrap().with_name("login").unwrap(),
            "login=fixed_window: 5/minute from first",
        );
    }

    #[test]
    fn a_name_survives_a_new_capacity() {
        let limit = Limit::parse("api=5/minute").unwrap().with_capacity(9).unwrap();
        assert_eq!(limit.to_string(), "api=5/minute burst 9");
        assert_eq!(limit.name(), "api");
    }

    #[test]
    fn numbers_outside_the_domain_are_named() {
        let text = |limit: Result<Limit>| limit.unwrap_err().to_string();
        assert!(text(Limit::token_bucket(0, MINUTE)).contains("deny"));
        assert!(text(Limit::token_bucket(1 << 32, MINUTE)).contains("4294967296"));
        assert!(text(Limit::token_bucket(1, Duration::ZERO)).contains("per of"));
        assert!(text(Limit::token_bucket_refilled(0, "1")).contains("capacity of 0"));
        let slow = Limit::fixed_window(1, Duration::from_micros((1 << 50) + 1), Anchor::Clock);
        assert!(text(slow).contains("1125899906842625"));
        assert!(text(Limit::deny().with_capacity(3)).contains("deny"));
        assert!(text(Limit::leaky_bucket(1, MINUTE, MAX_COUNT)).contains("queue of 4294967295"));
        assert!(text(Limit::deny().with_buckets(3)).contains("deny"));
        let log = Limit::sliding_log(5, MINUTE).unwrap();
        assert!(text(log.clone().with_buckets(7)).contains("7 buckets"));
        assert!(text(log.clone().with_buckets(0)).contains("0 buckets"));
        assert!(text(log.with_buckets(1200)).contains("1200 buckets"));
        assert!(text(Limit::concurrency(1, Duration::ZERO)).contains("expires"));
    }

    #[test]
    fn names_and_scopes_are_checked() {
        for bad in ["", "a b", "é", "a=b", &"x".repeat(65)] {
            assert!(Limit::deny().with_name(bad).is_err(), "{bad:?}");
        }
        assert!(Limit::deny().with_name(&"x".repeat(64)).is_ok());
        assert!(Limit::deny().with_scope("").is_err());
        assert_ne!(Limit::deny().with_scope("a").unwrap(), Limit::deny());
    }
}
