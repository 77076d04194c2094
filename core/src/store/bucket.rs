//! The identity of a bucket: which limit it belongs to, in every store.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use siphasher::sip128::{Hash128, SipHasher13};

use crate::algorithm::Algorithm;
use crate::algorithm::fixed_window::Windows;
use crate::limit::Limit;

/// A limit and its identity beside the key: `id` on Redis, a hash of it in memory.
pub(crate) struct Bucket {
    limit: Limit,
    id: Box<str>,
    fingerprint: Fingerprint,
}

/// 128 bits of a keyed hash of a key, with those of its limit; the seed is random, so that nobody can choose
/// collisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fingerprint {
    pub high: u64,
    pub low: u64,
}

impl Bucket {
    pub fn new(limit: &Limit) -> Self {
        let id = id(limit);
        Self { limit: limit.clone(), fingerprint: Fingerprint::keyed(LIMITS, id.as_bytes()), id: id.into() }
    }

    pub fn algorithm(&self) -> &Algorithm {
        self.limit.algorithm()
    }

    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// `t5/60`: a letter for the algorithm, its name or canonical numbers, and the scope last.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The fingerprint of this limit's bucket for a key.
    pub fn with_key(&self, key: Fingerprint) -> Fingerprint {
        Fingerprint { high: self.fingerprint.high ^ key.high, low: self.fingerprint.low ^ key.low }
    }
}

/// The seed for limits, which nobody chooses from outside: one for all processes that share a store.
const LIMITS: [u64; 2] = [0x6d69_7261_6220_6c69, 0x6d69_7473_2076_3120];

impl Fingerprint {
    /// Under this process's own seed.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        static SEED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
        let seed = SEED.each_ref().map(|half| match half.load(Ordering::Relaxed) {
            0 => drawn(half),
            half => half,
        });
        Self::keyed(seed, bytes)
    }

    #[inline]
    pub fn keyed([first, second]: [u64; 2], bytes: &[u8]) -> Self {
        let Hash128 { h1, h2 } = SipHasher13::new_with_keys(first, second).hash(bytes);
        Self { high: h1, low: h2 }
    }
}

/// A half of the seed, drawn when it is first needed: by the first of those who do, and nobody waits for him,
/// since he may be missing in a child.
#[cold]
fn drawn(half: &AtomicU64) -> u64 {
    let [random, _] = random_seed();
    half.compare_exchange(0, random, Ordering::Relaxed, Ordering::Relaxed)
        .map_or_else(|first| first, |_| random)
}

/// Two random numbers, none of them zero.
pub(crate) fn random_seed() -> [u64; 2] {
    [(); 2].map(|()| RandomState::new().build_hasher().finish().max(1))
}

/// `t5/60`: a letter for the algorithm, then its name (and what must not change under a name), or
/// its canonical numbers; the scope last.
fn id(limit: &Limit) -> String {
    let (letter, numbers, kept) = match limit.algorithm() {
        Algorithm::TokenBucket(it) => {
            let burst = if it.capacity == it.count { String::new() } else { format!("+{}", it.capacity) };
            ("t", format!("{}/{}{burst}", it.count, period(it.period_us)), String::new())
        }
        Algorithm::LeakyBucket(it) => {
            let queue = if it.queue() == 0 { String::new() } else { format!("q{}", it.queue()) };
            ("l", format!("{}/{}{queue}", it.bucket.count, period(it.bucket.period_us)), String::new())
        }
        Algorithm::FixedWindow(it) => {
            let mut windows = format!("/{}", period(it.period_us));
            match it.windows {
                Windows::Clock => {}
                Windows::First => windows.push('a'),
                #[cfg(feature = "calendar")]
                Windows::Calendar(calendar) => {
                    windows.push('@');
                    encode(calendar.zone.name().as_bytes(), &mut windows);
                }
            }
            windowed("f", it.limit, windows)
        }
        Algorithm::SlidingWindow(it) => windowed("w", it.limit, format!("/{}", period(it.period_us))),
        Algorithm::SlidingLog(it) => windowed("g", it.limit, format!("/{}", period(it.period_us))),
        Algorithm::SlidingBuckets(it) => {
            windowed("b", it.limit, format!("/{}k{}", period(it.period_us), it.buckets))
        }
        Algorithm::Concurrency(it) => ("c", format!("{}/{}", it.limit, period(it.expires_us)), String::new()),
        // Nothing is stored for these; the text only tells them apart.
        Algorithm::Deny | Algorithm::Unlimited => ("", limit.to_string(), String::new()),
    };
    let mut id = letter.to_owned();
    match limit.given_name() {
        Some(name) => id.extend(["=", name, &kept]),
        None => id.push_str(&numbers),
    }
    if let Some(scope) = limit.scope() {
        id.push('!');
        encode(scope.as_bytes(), &mut id);
    }
    id
}

/// Counts in windows mean something only for the same windows: these stay in the identity.
fn windowed(letter: &str, limit: u64, windows: String) -> (&str, String, String) {
    (letter, format!("{limit}{windows}"), windows)
}

/// Seconds, or the largest smaller unit that is whole.
fn period(us: u64) -> String {
    match us {
        us if us.is_multiple_of(1_000_000) => format!("{}", us / 1_000_000),
        us if us.is_multiple_of(1_000) => format!("{}ms", us / 1_000),
        us => format!("{us}us"),
    }
}

/// Appends `bytes`, those outside `A-Z a-z 0-9 . _ : @ / -` percent-encoded, so that no text can
/// choose a slot, another key or another limit.
pub(crate) fn encode(bytes: &[u8], text: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"._:@/-".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push(char::from(HEX[usize::from(byte >> 4)]));
            text.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_pinned() {
        for (text, expected) in [
            ("5/minute", "t5/60"),
            ("5 per 60 s", "t5/60"),
            ("100/s burst 300", "t100/1+300"),
            ("3/1500ms", "t3/1500ms"),
            ("3/7us", "t3/7us"),
            ("login=5/minute burst 9", "t=login"),
            ("fixed_window: 10/minute", "f10/60"),
            ("fixed_window: 10/minute from first", "f10/60a"),
            ("login=fixed_window: 10/minute from first", "f=login/60a"),
            ("leaky_bucket: 50/s queue 20", "l50/1q20"),
            ("leaky_bucket: 50/s", "l50/1"),
            ("x=leaky_bucket: 50/s queue 20", "l=x"),
            ("sliding_window: 10/hour", "w10/3600"),
            ("x=sliding_window: 10/hour", "w=x/3600"),
            ("sliding_log: 10/500ms", "g10/500ms"),
            ("x=sliding_log: 10/500ms", "g=x/500ms"),
            ("sliding_log: 10/minute buckets 6", "b10/60k6"),
            ("x=sliding_log: 10/minute buckets 6", "b=x/60k6"),
            ("concurrency: 20 for 30s", "c20/30"),
            ("x=concurrency: 20 for 30s", "c=x"),
        ] {
            assert_eq!(Bucket::new(&Limit::parse(text).unwrap()).id(), expected, "{text}");
        }
        let scoped = Limit::parse("5/minute").unwrap().with_scope("GET /a{b}").unwrap();
        assert_eq!(Bucket::new(&scoped).id(), "t5/60!GET%20/a%7Bb%7D");
    }

    #[test]
    fn buckets_of_one_key_differ_by_limit() {
        let key = Fingerprint::of(b"user:1");
        let of = |text: &str| Bucket::new(&Limit::parse(text).unwrap()).with_key(key);
        assert_eq!(of("5/minute"), of("5 per 60 seconds"));
        assert_ne!(of("5/minute"), of("100/minute"));
        assert_ne!(of("5/minute"), of("fixed_window: 5/minute"));
    }
}
