//! Long random histories: the library agrees with the slow model in every field, on every store, and
//! keeps the promise of `retry_after`.
//!
//! `MIRAB_STEPS` (memory) and `MIRAB_STEPS_REDIS` lengthen the runs; a failure names its seed, and
//! `MIRAB_SEED` plays it again.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod common;
mod model;

use std::time::Duration;

use common::shm::Shared;
use common::{Random, redis_store};
use mirab::{Decision, ErrorKind, Limit, Limiter, ManualClock, Policy, Store};
use model::{Answer, Bucket, Ending, Kind, Model, Sliding, Starts, Taken, Window};

const LAST_US: u64 = 1 << 52;
const COUNTS: [u64; 14] =
    [1, 2, 3, 5, 7, 10, 60, 100, 999, 1_000, 1_001, 65_537, 999_999_937, u32::MAX as u64];
const PERIODS: [u64; 10] = [
    1,
    7,
    1_000,
    1_500_000,
    1_000_000,
    60_000_000,
    3_600_000_000,
    86_400_000_000,
    2_592_000_000_000,
    1 << 50,
];

/// A limit in notation, without its name, and its model.
struct Drawn {
    notation: String,
    model: Box<dyn Model>,
}

type Draw = fn(&mut Random) -> Drawn;

fn bucket(random: &mut Random) -> Drawn {
    loop {
        let (count, period) = (*random.pick(&COUNTS), *random.pick(&PERIODS));
        let capacity = match random.below(4) {
            0 => count,
            1 => 1 + random.below(20),
            2 => *random.pick(&COUNTS),
            _ => 1 + random.below(u64::from(u32::MAX)),
        };
        let notation = format!("{count}/{period}us burst {capacity}");
        if Limit::parse(&notation).is_ok() {
            return Drawn { notation, model: Box::new(Bucket::new(count, period, capacity)) };
        }
    }
}

fn window(random: &mut Random) -> Drawn {
    let (limit, period) = (*random.pick(&COUNTS), *random.pick(&PERIODS));
    let (starts, from) = if random.one_in(2) { (Starts::First, " from first") } else { (Starts::Clock, "") };
    Drawn {
        notation: format!("fixed_window: {limit}/{period}us{from}"),
        model: Box::new(Window::new(limit, period, starts)),
    }
}

fn calendar(random: &mut Random) -> Drawn {
    const DAY: u64 = 86_400_000_000;
    let limit = *random.pick(&COUNTS);
    let (starts, unit, days) =
        *random.pick(&[(Starts::Days, "day", 1), (Starts::Weeks, "week", 7), (Starts::Months, "month", 30)]);
    Drawn {
        notation: format!("fixed_window: {limit}/{unit} in UTC"),
        model: Box::new(Window::new(limit, days * DAY, starts)),
    }
}

fn leaky(random: &mut Random) -> Drawn {
    loop {
        let (count, period) = (*random.pick(&COUNTS), *random.pick(&PERIODS));
        let queue = if random.one_in(2) { random.below(20) } else { *random.pick(&COUNTS) - 1 };
        let notation = format!("leaky_bucket: {count}/{period}us queue {queue}");
        if Limit::parse(&notation).is_ok() {
            return Drawn { notation, model: Box::new(Bucket::leaky(count, period, queue)) };
        }
    }
}

fn sliding(random: &mut Random) -> Drawn {
    let (limit, period) = (*random.pick(&COUNTS), *random.pick(&PERIODS));
    let notation = format!("sliding_window: {limit}/{period}us");
    Drawn { notation, model: Box::new(Sliding::new(limit, period)) }
}

fn log(random: &mut Random) -> Drawn {
    let (limit, period) = (*random.pick(&COUNTS), *random.pick(&PERIODS));
    let notation = format!("sliding_log: {limit}/{period}us");
    Drawn { notation, model: Box::new(Ending::new(Kind::Log, limit, period)) }
}

fn buckets(random: &mut Random) -> Drawn {
    loop {
        let (limit, period) = (*random.pick(&COUNTS), *random.pick(&PERIODS));
        let buckets = *random.pick(&[1, 2, 7, 10, 64, 1_000]);
        let notation = format!("sliding_log: {limit}/{period}us buckets {buckets}");
        if Limit::parse(&notation).is_ok() {
            return Drawn { notation, model: Box::new(Ending::new(Kind::Buckets(buckets), limit, period)) };
        }
    }
}

fn leases(random: &mut Random) -> Drawn {
    let (limit, expires) = (*random.pick(&COUNTS), *random.pick(&PERIODS));
    let notation = format!("concurrency: {limit} for {expires}us");
    Drawn { notation, model: Box::new(Ending::new(Kind::Leases, limit, expires)) }
}

fn any(random: &mut Random) -> Drawn {
    random.pick(&[bucket as Draw, leaky, window, calendar, sliding, log, buckets, leases])(random)
}

/// Other numbers for the same named limit: windows and logs keep period, anchor and buckets.
fn redraw(random: &mut Random, old: &Drawn) -> Drawn {
    let draw: Draw = match old.notation.split_once(": ") {
        None => bucket,
        Some(("leaky_bucket", _)) => leaky,
        Some(("concurrency", _)) => leases,
        Some((_, numbers)) => {
            let (_, windows) = numbers.split_once('/').unwrap();
            let draws = [window as Draw, calendar, sliding, log, buckets];
            loop {
                let drawn = random.pick(&draws)(random);
                let kept = drawn.notation.split_once('/').unwrap().1 == windows;
                let algorithm = |it: &Drawn| it.notation.split_once(':').unwrap().0.to_owned();
                if kept && algorithm(&drawn) == algorithm(old) {
                    return drawn;
                }
            }
        }
    };
    draw(random)
}

struct History {
    store: Store,
    clock: ManualClock,
    drawn: Vec<Drawn>,
    limiter: Limiter,
    model: model::Policy,
    random: Random,
    /// In its keys, where histories share a store.
    seed: u64,
    now: u64,
    turn: u64,
    /// Admitted decisions, to be released or settled.
    taken: Vec<(Taken, Decision)>,
}

impl History {
    fn new(store: Store, draw: Draw, limits: u64, seed: u64) -> Self {
        let mut random = Random(seed);
        let clock = ManualClock::default();
        let (drawn, limiter) = possible(&store, &clock, || (0..limits).map(|_| draw(&mut random)).collect());
        let model = model::Policy::new(drawn.iter().map(|it| it.model.boxed()).collect());
        let now = *random.pick(&[0, 1_790_000_000_123_457, LAST_US - 10_000_000]);
        Self { store, clock, drawn, limiter, model, random, seed, now, turn: 0, taken: Vec::new() }
    }

    fn step(&mut self) {
        self.move_time();
        if self.random.one_in(100) {
            self.renumber();
        }
        let key = self.random.below(3);
        let name = self.name(key);
        match self.random.below(100) {
            0 | 1 => {
                self.limiter.reset(&name).unwrap();
                self.model.reset(key);
            }
            2 => {
                let span = 1 + self.random.below(2 * self.drawn[0].model.span().min(1 << 49));
                self.limiter.block(&name, Duration::from_micros(span)).unwrap();
                self.model.block(key, self.now + span);
            }
            3..=5 => {
                self.limiter.unblock(&name).unwrap();
                self.model.unblock(key);
            }
            6..=20 => self.release(),
            21..=40 => self.settle(),
            41..=43 => return self.acquire_many(),
            _ => {}
        }
        let cost = self.cost();
        let take = !self.random.one_in(6);
        let decision = match take {
            true => self.limiter.acquire(&name, cost).unwrap(),
            false => self.limiter.peek(&name, cost).unwrap(),
        };
        self.turn += 1;
        let expected = self.model.decide(key, self.now, cost, take, self.turn);
        assert_eq!(self.told(&decision), expected, "now {} cost {cost} take {take}: {decision:?}", self.now);
        assert_eq!(
            decision.retry_after(),
            (expected.retry_after > 0).then(|| Duration::from_micros(expected.retry_after))
        );
        if take && cost > 0 && decision.allowed() {
            self.taken.push((self.model.taken(key, self.turn, self.now, cost), decision));
        } else if let Some(wait) = decision.retry_after().filter(|_| take && !expected.blocked) {
            // A question writes nothing, so that a state from the future stays there; and behind a block
            // a limit may refuse, too.
            self.check_promise(&name, cost, wait.as_micros() as u64);
        }
    }

    /// Returns what was taken some time ago, perhaps once more.
    fn release(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        let place = self.random.below(self.taken.len() as u64) as usize;
        let (taken, decision) = &self.taken[place];
        let ended = self.limiter.release(decision).unwrap();
        assert_eq!(ended, self.model.release(taken.key, self.now, taken.turn), "release of {taken:?}");
        if !self.random.one_in(4) {
            self.taken.swap_remove(place);
        }
    }

    /// Gives back what was taken, or settles it at another cost; a second time nothing happens.
    fn settle(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        let place = self.random.below(self.taken.len() as u64) as usize;
        let (taken, decision) = self.taken.swap_remove(place);
        if self.random.one_in(2) {
            let given = self.limiter.refund(&decision).unwrap();
            let expected = self.model.refund(self.now, taken.cost, &taken, true);
            assert_eq!(given, expected, "refund of {taken:?} at {}", self.now);
        } else {
            let actual = match self.random.below(4) {
                0 => 0,
                1 => self.random.below(taken.cost + 1),
                2 => taken.cost + 1,
                _ => taken.cost + self.random.below(1 << 33),
            };
            self.limiter.commit(&decision, actual).unwrap();
            match actual.checked_sub(taken.cost) {
                None | Some(0) => {
                    self.model.refund(self.now, taken.cost - actual, &taken, false);
                }
                Some(more) => {
                    self.turn += 1;
                    self.model.force(taken.key, self.now, more, self.turn);
                }
            }
        }
        assert_eq!(self.limiter.refund(&decision).unwrap(), 0, "a second time");
    }

    /// Several keys at once, some of them twice.
    fn acquire_many(&mut self) {
        let items: Vec<(u64, u64)> =
            (0..1 + self.random.below(5)).map(|_| (self.random.below(3), self.cost())).collect();
        let named: Vec<(String, u64)> = items.iter().map(|&(key, cost)| (self.name(key), cost)).collect();
        let decisions = self.limiter.acquire_many(&named).unwrap();
        for (&(key, cost), decision) in items.iter().zip(decisions) {
            self.turn += 1;
            let expected = self.model.decide(key, self.now, cost, true, self.turn);
            assert_eq!(self.told(&decision), expected, "{items:?} at {}", self.now);
            if cost > 0 && decision.allowed() {
                self.taken.push((self.model.taken(key, self.turn, self.now, cost), decision));
            }
        }
    }

    /// The same cost is admitted at that microsecond, and refused one before.
    fn check_promise(&mut self, name: &str, cost: u64, wait: u64) {
        let then = self.now + wait;
        if then <= LAST_US {
            self.clock.set_us(then).unwrap();
            assert!(self.limiter.peek(name, cost).unwrap().allowed(), "not admitted after {wait}");
            self.clock.set_us(then - 1).unwrap();
            assert!(!self.limiter.peek(name, cost).unwrap().allowed(), "admitted before {wait}");
            if self.random.one_in(3) {
                self.now = then - self.random.below(2);
            }
        }
        self.clock.set_us(self.now).unwrap();
    }

    fn told(&self, decision: &Decision) -> Answer {
        let us = |duration: Duration| duration.as_micros() as u64;
        Answer {
            blocked: decision.is_blocked(),
            allowed: decision.allowed(),
            never: decision.never(),
            deciding: decision.limit_name().strip_prefix('n').map_or(0, |index| index.parse().unwrap()),
            retry_after: decision.retry_after().map_or(0, us),
            delay: us(decision.delay()),
            standings: decision
                .standings()
                .map(|it| [it.limit, it.used, it.remaining, us(it.reset_after), it.next_after.map_or(0, us)])
                .collect(),
        }
    }

    fn cost(&mut self) -> u64 {
        let capacity = self.random.pick(&self.drawn).model.capacity();
        match self.random.below(12) {
            0 => 0,
            1 => capacity,
            2 => capacity + 1,
            3 => capacity.div_ceil(2),
            4 | 5 => 1 + self.random.below(capacity),
            6 if self.random.one_in(10) => 1 << 53,
            _ => 1,
        }
    }

    /// Mostly a little forward, sometimes far, sometimes back.
    fn move_time(&mut self) {
        let drain = self.random.pick(&self.drawn).model.span();
        let random = &mut self.random;
        let step = match random.below(20) {
            0..=6 => 0,
            7..=9 => 1,
            10..=15 => random.below(drain / 8 + 2),
            16 | 17 => random.below(drain.saturating_mul(2) + 2),
            18 => drain,
            _ => {
                self.now = self.now.saturating_sub(random.below(drain.saturating_mul(3) + 2));
                0
            }
        };
        self.now = (self.now + step).min(LAST_US);
        self.clock.set_us(self.now).unwrap();
    }

    fn name(&self, key: u64) -> String {
        format!("key {key} of {}", self.seed)
    }

    /// Leaves nothing in a store that other histories use, too.
    fn end(&self) {
        (0..3).for_each(|key| self.limiter.reset(self.name(key)).unwrap());
    }

    fn renumber(&mut self) {
        let Self { store, clock, drawn, random, .. } = self;
        let draw = || drawn.iter().map(|old| redraw(random, old)).collect();
        (self.drawn, self.limiter) = possible(store, clock, draw);
        self.model.renumber(self.drawn.iter().map(|it| it.model.boxed()).collect());
    }
}

/// What is drawn and its limiter; again where the store has no room for such lists.
fn possible(
    store: &Store,
    clock: &ManualClock,
    mut draw: impl FnMut() -> Vec<Drawn>,
) -> (Vec<Drawn>, Limiter) {
    loop {
        let drawn = draw();
        let each = drawn.iter().enumerate();
        let named = each.map(|(index, it)| Limit::parse(&format!("n{index}={}", it.notation)).unwrap());
        let policy = Policy::new(named.collect()).unwrap();
        let builder = Limiter::builder(policy).store(store.clone()).clock(clock.clone());
        match builder.on_store_failure(mirab::OnStoreFailure::Raise).build() {
            Ok(limiter) => return (drawn, limiter),
            Err(error) => assert_eq!((error.kind(), store.kind()), (ErrorKind::Unsupported, "shm")),
        }
    }
}

fn steps(variable: &str) -> u64 {
    std::env::var(variable).map_or(20_000, |text| text.parse().unwrap())
}

fn run(draw: Draw, limits: u64, steps: u64, store: impl Fn() -> Store) {
    const STEPS_EACH: u64 = 200;
    let first: u64 = std::env::var("MIRAB_SEED").map_or(1, |text| text.parse().unwrap());
    for seed in first..first + steps.div_ceil(STEPS_EACH) {
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut history = History::new(store(), draw, limits, seed);
            (0..STEPS_EACH).for_each(|_| history.step());
            history.end();
        }));
        if let Err(panic) = told {
            eprintln!("the history of MIRAB_SEED={seed} disagrees");
            std::panic::resume_unwind(panic);
        }
    }
}

macro_rules! agreement {
    ($($name:ident: $draw:expr, $limits:expr;)*) => {
        mod memory {
            use super::*;
            $(#[test] fn $name() { run($draw, $limits, steps("MIRAB_STEPS"), || Store::open("memory:").unwrap()); })*
        }
        mod shm {
            use super::*;
            $(#[test] fn $name() {
                let shared = Shared::new(stringify!($name));
                let store = Store::open(&shared.uri("?max_keys=64&log_entries=2048")).unwrap();
                run($draw, $limits, steps("MIRAB_STEPS"), || store.clone());
            })*
        }
        mod redis {
            use super::*;
            $(#[test] fn $name() { run($draw, $limits, steps("MIRAB_STEPS_REDIS"), || redis_store().0); })*
        }
    };
}

agreement! {
    token_bucket: bucket, 1;
    leaky_bucket: leaky, 1;
    fixed_window: window, 1;
    calendar_window: calendar, 1;
    sliding_window: sliding, 1;
    sliding_log: log, 1;
    sliding_buckets: buckets, 1;
    concurrency: leases, 1;
    policies: any, 3;
}
