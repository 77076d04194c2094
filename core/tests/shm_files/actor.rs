//! Who does all that a limiter can do, whatever the file says.

use std::time::{Duration, Instant};

use mirab::{Decision, Error, ErrorKind, Limiter, ManualClock, OnStoreFailure, Policy, Store};

use crate::common::Random;

/// Every algorithm, alone and together.
const POLICIES: [&str; 12] = [
    "10/hour",
    "100/second burst 300",
    "leaky_bucket: 10/hour queue 9",
    "fixed_window: 10/30 days from first",
    "fixed_window: 5/minute",
    "sliding_window: 10/365 days",
    "sliding_log: 10/hour",
    "sliding_log: 64/second",
    "sliding_log: 1000/hour buckets 60",
    "concurrency: 10 for 1h",
    "10/hour; sliding_log: 20/day; concurrency: 30 for 1h; fixed_window: 9/day from first",
    "5/second; 100/hour",
];

/// Keys are few, so that states are met again, and more than there is room for.
const KEYS: u64 = 150;

/// No call takes longer than this: what is waited for is 20 ms, some calls wait several times.
const LONGEST: Duration = Duration::from_secs(10);

const START_US: u64 = 1_800_000_000_000_000;

pub struct Actor {
    limiters: Vec<(Limiter, Option<ManualClock>)>,
    kept: Vec<(usize, Decision)>,
    /// How often each kind of error came.
    pub errors: Vec<(ErrorKind, u64)>,
    pub slowest: Duration,
}

impl Actor {
    pub fn new(store: &Store) -> Self {
        let limiters = POLICIES.iter().flat_map(|policy| {
            let built = |clock: Option<ManualClock>| {
                let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(store.clone());
                let builder = builder.on_store_failure(OnStoreFailure::Raise);
                let builder = match &clock {
                    Some(clock) => builder.clock(clock.clone()),
                    None => builder,
                };
                (builder.build().unwrap(), clock)
            };
            [built(None), built(Some(ManualClock::new(START_US).unwrap()))]
        });
        Self { limiters: limiters.collect(), kept: Vec::new(), errors: Vec::new(), slowest: Duration::ZERO }
    }

    /// Does one thing: an answer, or an error of the file's.
    pub fn act(&mut self, random: &mut Random) -> Result<(), ErrorKind> {
        let begun = Instant::now();
        let what = random.below(20);
        let done = self.do_it(what, random);
        let took = begun.elapsed();
        assert!(took < LONGEST, "operation {what} took {took:?}: {done:?}");
        self.slowest = self.slowest.max(took);
        done.map_err(|error| {
            let kind = error.kind();
            let is_expected =
                matches!(kind, ErrorKind::StoreCorrupt | ErrorKind::StoreFull | ErrorKind::StoreTimeout);
            assert!(is_expected, "operation {what}: {kind:?} {error}");
            match self.errors.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => self.errors.push((kind, 1)),
            }
            kind
        })
    }

    fn do_it(&mut self, what: u64, random: &mut Random) -> Result<(), Error> {
        let index = random.below(self.limiters.len() as u64) as usize;
        let (limiter, clock) = &self.limiters[index];
        if let Some(clock) = clock
            && random.one_in(4)
        {
            let bits = random.below(42);
            let _ = clock.advance_us(random.below(1 << bits));
        }
        let key = random.below(KEYS).to_le_bytes();
        let cost = random.below(4);
        match what {
            0..=7 => {
                let decision = limiter.acquire(key, cost)?;
                check(&decision);
                self.kept.push((index, decision));
            }
            8 | 9 => check(&limiter.peek(key, cost)?),
            10 | 11 => {
                limiter.allow(key, 1 + cost)?;
            }
            12 => {
                let items: Vec<_> =
                    (0..5).map(|_| (random.below(KEYS).to_le_bytes(), random.below(3))).collect();
                limiter.acquire_many(&items)?.iter().for_each(check);
            }
            13..=16 => {
                let at = random.below(self.kept.len().max(1) as u64) as usize;
                if at < self.kept.len() {
                    let (index, decision) = self.kept.swap_remove(at);
                    let limiter = &self.limiters[index].0;
                    match what {
                        13 => {
                            limiter.refund(&decision)?;
                        }
                        14 => limiter.commit(&decision, random.below(6))?,
                        _ if POLICIES[index / 2].contains("concurrency") => {
                            limiter.release(&decision)?;
                        }
                        _ => {
                            limiter.refund(&decision)?;
                        }
                    }
                }
            }
            17 => limiter.reset(key)?,
            18 => limiter.block(key, Duration::from_millis(1 + random.below(1 << 20)))?,
            _ => {
                limiter.unblock(key)?;
                let stats = limiter.stats();
                assert!(stats.keys < 1 << 32, "{stats:?}");
            }
        }
        self.kept.truncate(200);
        Ok(())
    }

    /// Forgets all keys, then every limit must decide; which do not.
    pub fn mend(&self) -> Result<(), Error> {
        for (limiter, _) in &self.limiters {
            for key in 0..KEYS {
                limiter.reset(key.to_le_bytes())?;
            }
        }
        for (limiter, _) in &self.limiters {
            for key in [0_u64, 7, 50, KEYS + 1] {
                let key = key.to_le_bytes();
                limiter.reset(key)?;
                check(&limiter.acquire(key, 1)?);
                check(&limiter.peek(key, 1)?);
                // What seems to be blocked keys stays.
                match limiter.block(key, Duration::from_secs(1)) {
                    Err(error) if error.kind() == ErrorKind::StoreFull => {}
                    blocked => blocked?,
                }
                limiter.unblock(key)?;
            }
        }
        Ok(())
    }
}

/// That all of an answer can be looked at.
fn check(decision: &Decision) {
    for standing in decision.standings() {
        assert!(!standing.name().is_empty());
    }
    let _ = (decision.used(), decision.retry_after(), decision.reset_after(), decision.delay());
    assert!(decision.remaining() <= decision.limit(), "{decision:?}");
}
