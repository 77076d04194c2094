//! Eight threads that decide without a pause worth the name, and what they were told.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use mirab::{Decision, Error, Limiter, OnStoreFailure, Policy, Store};

use super::say;
use super::server::Server;

/// The limit of every key, of which none comes back within a test.
pub const CAPACITY: u64 = 100;
pub const LIMIT: &str = "fixed_window: 100/10000 days";

/// How many requests a hot key sees before the next one is hot.
const TURNS: u64 = 600;

/// No call may take longer than the deadline of 50 ms and 20 ms more. On a machine that does other
/// things, too, only ten times that tells a fault from bad luck.
pub const BOUND: Duration = Duration::from_millis(70);
pub const TOLERANCE: u32 = 10;

/// How long an outage lasts: by default 2 s.
pub fn outage() -> Duration {
    Duration::from_millis(super::number("MIRAB_OUTAGE_MS", 2_000))
}

/// A limiter on the store behind a URI.
pub fn limiter_on(uri: &str, choice: OnStoreFailure) -> Limiter {
    let policy = Policy::parse(LIMIT).unwrap();
    let builder = Limiter::builder(policy).store(Store::open(uri).unwrap());
    builder.on_store_failure(choice).build().unwrap()
}

/// What the threads were told.
#[derive(Debug, Default)]
pub struct Told {
    pub by_store: AtomicU64,
    pub degraded: AtomicU64,
    pub errors: AtomicU64,
    all_degraded: AtomicU64,
    longest_us: AtomicU64,
    turns: AtomicU64,
    first_error: Mutex<Option<Error>>,
    /// How many units of each hot key the store admitted, and this process by itself.
    hot: Mutex<HashMap<u64, [u64; 2]>>,
    /// Keys that were asked for once and that the store did admit.
    admitted_once: AtomicU64,
    /// Admitted and refused in the store's place.
    pub instead: [AtomicU64; 2],
}

pub struct Load<'a> {
    limiter: &'a Limiter,
    told: &'a Told,
    stop: &'a AtomicBool,
}

/// Runs `scene` while eight threads decide: each in turn for a key that is hot for a while, and for one of
/// its own, which is asked for once.
pub fn under_load(limiter: &Limiter, scene: impl FnOnce(&Load<'_>)) -> Told {
    let (told, stop) = (Told::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let load = Load { limiter, told: &told, stop: &stop };
                load.decide_until_stopped();
            });
        }
        // Also when the scene fails: else the threads would be waited for for ever.
        let load = Load { limiter, told: &told, stop: &stop };
        let _stopping = Stopping(&stop);
        scene(&load);
    });
    told
}

struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Load<'_> {
    /// Waits until so many more requests were decided by the store; the time that took.
    pub fn decided_by_store(&self, more: u64) -> Duration {
        self.counted("decisions of the store", &self.told.by_store, more)
    }

    /// Waits until so many more requests were decided in the store's place, or were errors.
    pub fn failed(&self, more: u64) {
        let failed = || self.told.degraded.load(Relaxed) + self.told.errors.load(Relaxed);
        let from = failed();
        wait_until("failures of the store", || failed() >= from + more);
    }

    /// Goes on for a while.
    pub fn go_on(&self, time: Duration) {
        thread::sleep(time);
    }

    fn counted(&self, what: &str, count: &AtomicU64, more: u64) -> Duration {
        let (begun, from) = (Instant::now(), count.load(Relaxed));
        wait_until(what, || count.load(Relaxed) >= from + more);
        begun.elapsed()
    }

    fn decide_until_stopped(&self) {
        let mut hot_keys: HashMap<u64, [u64; 2]> = HashMap::new();
        while !self.stop.load(Relaxed) {
            let turn = self.told.turns.fetch_add(1, Relaxed);
            let hot = turn / TURNS;
            if let Some(decision) = self.ask(&format!("hot-{hot}"))
                && decision.allowed()
            {
                hot_keys.entry(hot).or_default()[usize::from(decision.degraded())] += 1;
            }
            if let Some(decision) = self.ask(&format!("once-{turn}")) {
                // What a hot key is refused may be remembered: only a new key tells who decides now.
                let place = if decision.degraded() { &self.told.degraded } else { &self.told.by_store };
                place.fetch_add(1, Relaxed);
                if decision.degraded() {
                    self.told.instead[usize::from(!decision.allowed())].fetch_add(1, Relaxed);
                } else {
                    assert!(decision.allowed(), "{turn}: {decision:?}");
                    self.told.admitted_once.fetch_add(1, Relaxed);
                }
            }
            thread::sleep(Duration::from_micros(500));
        }
        let mut all = self.told.hot.lock().unwrap();
        for (hot, [by_store, degraded]) in hot_keys {
            let sum = all.entry(hot).or_default();
            *sum = [sum[0] + by_store, sum[1] + degraded];
        }
    }

    fn ask(&self, key: &str) -> Option<Decision> {
        let begun = Instant::now();
        let decided = self.limiter.acquire(key, 1);
        self.told.longest_us.fetch_max(begun.elapsed().as_micros() as u64, Relaxed);
        match decided {
            Ok(decision) => {
                self.told.all_degraded.fetch_add(decision.degraded().into(), Relaxed);
                Some(decision)
            }
            Err(error) => {
                self.told.errors.fetch_add(1, Relaxed);
                self.told.first_error.lock().unwrap().get_or_insert(error);
                None
            }
        }
    }
}

impl Told {
    /// No call took too long, none was an error, and every decision in the store's place was counted.
    pub fn check(&self, scene: &str, limiter: &Limiter) {
        self.check_times(scene);
        assert_eq!(*self.first_error.lock().unwrap(), None, "{scene}");
        let stats = limiter.stats();
        let turns = self.turns.load(Relaxed);
        assert_eq!(stats.errors, 0, "{scene}");
        assert_eq!(stats.allowed + stats.refused, 2 * turns, "{scene}: {stats:?}");
        assert_eq!(self.by_store.load(Relaxed) + self.degraded.load(Relaxed), turns, "{scene}");
        assert_eq!(stats.degraded, self.all_degraded.load(Relaxed), "{scene}");
    }

    /// As [`check`](Self::check), where the failures of the store are to be errors.
    pub fn check_times(&self, scene: &str) {
        let longest = Duration::from_micros(self.longest_us.load(Relaxed));
        let (by_store, degraded) = (self.by_store.load(Relaxed), self.degraded.load(Relaxed));
        let errors = self.errors.load(Relaxed);
        say(format_args!(
            "{scene}: longest call {longest:?} (bound {BOUND:?}); {by_store} decided by the store, {degraded} \
             degraded, {errors} errors"
        ));
        assert!(longest <= TOLERANCE * BOUND, "{scene}: a call took {longest:?}");
    }

    pub fn first_error(&self) -> Option<Error> {
        self.first_error.lock().unwrap().clone()
    }

    /// Of each key the store admitted its capacity, and once more for each time that it lost everything;
    /// this process by itself its own limit, which is the same.
    pub fn check_admitted(&self, scene: &str, losses: u64) {
        let hot = self.hot.lock().unwrap();
        let most = |place: usize| hot.values().map(|admitted| admitted[place]).max().unwrap_or(0);
        let (by_store, degraded) = (most(0), most(1));
        say(format_args!(
            "{scene}: of the {CAPACITY} of a key the store admitted at most {by_store}, this process by itself at \
             most {degraded}"
        ));
        assert!(by_store <= CAPACITY * (1 + losses), "{scene}: the store admitted {by_store} of {CAPACITY}");
        assert!(degraded <= CAPACITY, "{scene}: {degraded} of {CAPACITY} were admitted locally");
    }

    /// The server was asked at most once for each decision: what it was asked for once was charged once at
    /// most, and what it admitted was, where it lost nothing.
    pub fn check_charges(&self, scene: &str, server: &Server, losses: u64) {
        let mut connection = server.raw();
        let keys: Vec<String> = redis::cmd("KEYS").arg("*{once-*").query(&mut connection).unwrap();
        let mut values: HashMap<String, u64> = HashMap::new();
        for keys in keys.chunks(1_000) {
            let read: Vec<String> = redis::cmd("MGET").arg(keys).query(&mut connection).unwrap();
            read.into_iter().for_each(|value| *values.entry(value).or_default() += 1);
        }
        // A count and the window's number, which is the same for all of them.
        let charged = keys.len() as u64;
        assert!(values.len() <= 1 && values.keys().all(|value| value.starts_with('1')), "{values:?}");
        let admitted = self.admitted_once.load(Relaxed);
        let calls = server.calls();
        let asked = 2 * self.turns.load(Relaxed);
        say(format_args!(
            "{scene}: {calls} calls of the script for {asked} decisions; {charged} charged, {admitted} told so"
        ));
        assert!(losses > 0 || charged >= admitted, "{scene}: {admitted} were admitted and {charged} charged");
        assert!(calls <= asked, "{scene}: {calls} calls for {asked} decisions");
    }
}

/// Waits until something is so, and fails when it does not become so.
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
        thread::sleep(Duration::from_micros(200));
    }
}
