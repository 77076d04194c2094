//! Refusals that are remembered: until the state that refused would admit, asking the store again would
//! only be refused again.
//!
//! What the store saw is kept with two readings of this process's clock: from the one before the request
//! was sent the store's time is never estimated too early, so that nobody is refused at an instant at
//! which the store would admit; from the one after its answer never too late, so that nobody is told to
//! wait too short. Each second the store is asked again, since others may have given back or reset.

use std::sync::Mutex;

use smallvec::SmallVec;

use super::bucket::Fingerprint;
use super::charge::{Outcome, Request};
use crate::algorithm::{Algorithm, Seen};
use crate::clock::Now;
use crate::fork;
use crate::receipt::Lease;

/// How long a refusal is believed, in microseconds, without one of those who are refused asking the store again,
/// and how long at all.
const ASKED_AGAIN_US: u64 = 900_000;
const BELIEVED_US: u64 = 1_000_000;

/// Sets that a key may fall into, a power of two, and refusals that each holds: 98 304 in all.
const SETS: usize = 1024;
const IN_A_SET: usize = 96;

pub(super) struct Refusals {
    sets: Box<[Mutex<Set>]>,
}

#[derive(Default)]
struct Set {
    refusals: Vec<Refusal>,
    /// When something was last forgotten: what was asked before says nothing any more.
    forgotten: u64,
}

impl Default for Refusals {
    fn default() -> Self {
        Self { sets: (0..SETS).map(|_| Mutex::default()).collect() }
    }
}

struct Refusal {
    key: Fingerprint,
    /// Of the policy's buckets for the key.
    buckets: Fingerprint,
    cost: u64,
    seen: SmallVec<[Seen; 1]>,
    /// The store's time, and this process's before it was asked and after it answered.
    at: u64,
    sent: u64,
    received: u64,
    /// Whether someone asks the store again.
    is_asked: bool,
}

impl Refusals {
    /// Remembers what refused a request, as far as that lasts.
    pub fn remember(&self, request: &Request<'_>, outcome: &Outcome, sent: u64, received: u64) {
        let key = Fingerprint::of(request.key);
        let buckets = buckets(request, key);
        let (at, seen) = (outcome.now.steady, outcome.seen.clone());
        let is_asked = false;
        let refusal = Refusal { key, buckets, cost: request.cost, seen, at, sent, received, is_asked };
        let lasts = refusal.refuses(request, at);
        let Set { refusals, forgotten } = &mut *fork::lock(self.set(key));
        // With what is not believed any more a set that was large for a while becomes small again.
        refusals
            .retain(|other| other.buckets != buckets && received.saturating_sub(other.sent) < BELIEVED_US);
        if lasts && sent > *forgotten {
            if refusals.len() == IN_A_SET {
                refusals.remove(0);
            }
            refusals.push(refusal);
        }
    }

    /// Ends what was remembered: the request was admitted.
    pub fn end(&self, request: &Request<'_>) {
        let key = Fingerprint::of(request.key);
        let refusals = &mut fork::lock(self.set(key)).refusals;
        if !refusals.is_empty() {
            let buckets = buckets(request, key);
            refusals.retain(|other| other.buckets != buckets);
        }
    }

    /// The refusal of this request, where the store would surely give it. The clock is read when it is found: one who
    /// had to wait for others would take it for older than it is, or for one of the future.
    pub fn recall(&self, request: &Request<'_>, local: impl FnOnce() -> u64) -> Option<Outcome> {
        let key = Fingerprint::of(request.key);
        let mut set = fork::lock(self.set(key));
        if set.refusals.is_empty() {
            return None;
        }
        let buckets = buckets(request, key);
        let refusal = set.refusals.iter_mut().find(|refusal| refusal.buckets == buckets)?;
        let local = local();
        let since = local.checked_sub(refusal.sent).filter(|&since| since < BELIEVED_US)?;
        if !refusal.refuses(request, refusal.at + since) {
            return None;
        }
        if since >= ASKED_AGAIN_US && !std::mem::replace(&mut refusal.is_asked, true) {
            return None;
        }
        let now = refusal.at + local.saturating_sub(refusal.received);
        let now = Now { steady: now, wall: now };
        let seen = match refusal.seen.as_slice() {
            [Seen::Blocked(end)] => SmallVec::from_buf([Seen::Blocked(*end)]),
            seen => request
                .buckets
                .iter()
                .zip(seen)
                .map(|(bucket, seen)| aged(bucket.algorithm(), seen, now, request.cost))
                .collect(),
        };
        Some(Outcome { admitted: false, now, seen, lease: Lease::default() })
    }

    /// Forgets all refusals of a key, also those that are still on their way: something of it was given back, or
    /// changed.
    pub fn forget(&self, key: &[u8], local: u64) {
        let key = Fingerprint::of(key);
        let mut set = fork::lock(self.set(key));
        set.refusals.retain(|refusal| refusal.key != key);
        set.forgotten = local;
    }

    /// Every lock of it, for the time around a fork.
    pub fn hold(&self) -> Vec<Box<dyn fork::Held + '_>> {
        self.sets.iter().map(|set| Box::new(fork::lock(set)) as Box<dyn fork::Held>).collect()
    }

    fn set(&self, key: Fingerprint) -> &Mutex<Set> {
        &self.sets[place(key)]
    }
}

impl Refusal {
    /// Whether it refuses this request at that time of the store.
    fn refuses(&self, request: &Request<'_>, at: u64) -> bool {
        if let [Seen::Blocked(end)] = self.seen.as_slice() {
            return at < *end;
        }
        let now = Now { steady: at, wall: at };
        request.buckets.iter().zip(&self.seen).any(|(bucket, seen)| match (bucket.algorithm(), seen) {
            // Who holds a lease may return it at any time.
            (Algorithm::Concurrency(_), _) => false,
            // Of a list only the instant at which enough has ended is known, for the cost that was asked.
            (_, Seen::Tally(tally)) => request.cost >= self.cost && at < tally.needed_end,
            (algorithm, seen) => {
                !algorithm.admits(&aged(algorithm, seen, now, request.cost), now, request.cost)
            }
        })
    }
}

/// What is left of a state later.
fn aged(algorithm: &Algorithm, seen: &Seen, now: Now, cost: u64) -> Seen {
    match (seen, algorithm.fresh(*seen)) {
        (Seen::Tally(_), _) | (_, None) => *seen,
        (_, Some(state)) => algorithm.see(Some(&state), now, cost).0,
    }
}

fn buckets(request: &Request<'_>, key: Fingerprint) -> Fingerprint {
    request.buckets.iter().enumerate().fold(key, |all, (place, bucket)| {
        let own = bucket.with_key(key);
        // The order counts: what was seen is in that of the policy.
        let (high, low) = (own.high.rotate_left(place as u32), own.low.rotate_left(place as u32));
        Fingerprint { high: all.high ^ high, low: all.low.wrapping_add(low) }
    })
}

fn place(key: Fingerprint) -> usize {
    key.low as usize & (SETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::store::charge::Request;

    /// Asks a memory of refusals beside the model of the store's own answer.
    fn refused(policy: &str, used: u64, cost: u64, later: u64, drawn: u64) -> Option<(bool, u64)> {
        let policy = Policy::parse(policy).unwrap();
        let request = |cost| Request { buckets: policy.buckets(), key: b"k", cost };
        let at = 1_000_000_000;
        let now = Now { steady: at, wall: at };
        let algorithm = policy.limits()[0].algorithm();
        let seen = algorithm.charged(algorithm.nothing(now), now, used);
        let outcome =
            Outcome { admitted: false, now, seen: SmallVec::from_buf([seen]), lease: Lease::default() };
        let refusals = Refusals::default();
        // Sent at 500 and answered at 700 by this process's clock: the store's time was between.
        refusals.remember(&request(cost), &outcome, 500, 700);
        let outcome = refusals.recall(&request(drawn), || 500 + later)?;
        let wait = algorithm.retry_after(&outcome.seen[0], outcome.now, drawn);
        Some((outcome.admitted, wait))
    }

    #[test]
    fn it_refuses_until_the_store_could_admit_and_promises_nothing_too_early() {
        // One token of 10 in 500 ms: after 5 of 5, the next is there 500 ms later.
        let policy = "10/5s burst 5";
        assert_eq!(refused(policy, 5, 1, 300, 1), Some((false, 500_000 - 100)));
        assert_eq!(refused(policy, 5, 1, 499_999, 1), Some((false, 201)));
        assert_eq!(refused(policy, 5, 1, 500_000, 1), None);
        // It knows for other costs, too: of 4 of 5, one fits and three do not.
        assert_eq!(refused(policy, 4, 2, 300, 1), None);
        assert!(refused(policy, 4, 2, 300, 3).is_some());
    }

    #[test]
    fn it_asks_again_each_second() {
        assert!(refused("1/hour", 1, 1, 899_999, 1).is_some());
        assert_eq!(refused("1/hour", 1, 1, 900_000, 1), None);
    }

    #[test]
    fn one_asks_again_and_the_others_believe_until_a_second_has_passed() {
        let policy = Policy::parse("1/hour").unwrap();
        let request = Request { buckets: policy.buckets(), key: b"k", cost: 1 };
        let refusals = Refusals::default();
        refusals.remember(&request, &refusing(&policy), 500, 700);
        let is_refused = |local| refusals.recall(&request, || local).is_some();
        assert_eq!([900_500, 900_500, 1_000_499, 1_000_500].map(is_refused), [false, true, true, false]);
        refusals.remember(&request, &refusing(&policy), 900_500, 900_700);
        assert!(is_refused(1_800_499));
        refusals.end(&request);
        assert!(!is_refused(901_000));
    }

    #[test]
    fn what_was_on_its_way_when_it_was_forgotten_is_not_remembered() {
        let policy = Policy::parse("1/hour").unwrap();
        let request = Request { buckets: policy.buckets(), key: b"k", cost: 1 };
        let refusals = Refusals::default();
        refusals.forget(b"k", 600);
        refusals.remember(&request, &refusing(&policy), 500, 700);
        assert!(refusals.recall(&request, || 800).is_none());
        refusals.remember(&request, &refusing(&policy), 601, 700);
        assert!(refusals.recall(&request, || 800).is_some());
    }

    /// The answer of a store in which one is used.
    fn refusing(policy: &Policy) -> Outcome {
        let now = Now { steady: 1_000_000_000, wall: 1_000_000_000 };
        let algorithm = policy.limits()[0].algorithm();
        let seen = SmallVec::from_buf([algorithm.charged(algorithm.nothing(now), now, 1)]);
        Outcome { admitted: false, now, seen, lease: Lease::default() }
    }

    #[test]
    fn windows_end_and_leases_are_never_remembered() {
        // The window of 600 ms that holds the 1 000th second ends 200 ms later.
        assert!(refused("fixed_window: 3/600ms", 3, 1, 199_000, 1).is_some());
        assert_eq!(refused("fixed_window: 3/600ms", 3, 1, 200_000, 1), None);
        assert!(refused("sliding_window: 3/600ms", 3, 1, 100_000, 1).is_some());
        assert_eq!(refused("concurrency: 1 for 30s", 1, 1, 300, 1), None);
        assert!(refused("deny", 0, 1, 300, 1).is_some());
    }
}
