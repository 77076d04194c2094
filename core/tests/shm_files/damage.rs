//! Whatever others write into the file while it is used: answers or errors, and no call that panics, crashes
//! or never ends.
//!
//! `MIRAB_FUZZ` says how many rounds; `MIRAB_SEED` which.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

use mirab::{ErrorKind, Store};

use crate::actor::Actor;
use crate::anatomy::{self, Anatomy, control, word};
use crate::common::shm::Shared;
use crate::common::{Random, number, say};
use crate::workers::{self, Worker, may_go_on, tell};
use crate::wrong::put;

const PARAMETERS: &str = "?max_keys=130&log_entries=64&timeout_ms=20";

/// Who overwrites a file.
pub struct Vandal {
    file: File,
    pub anatomy: Anatomy,
    random: Random,
}

impl Vandal {
    pub fn new(shared: &Shared, seed: u64) -> Self {
        let bytes = std::fs::read(&shared.path).unwrap();
        let file = File::options().read(true).write(true).open(&shared.path).unwrap();
        Self { file, anatomy: Anatomy::of(&bytes), random: Random(seed) }
    }

    pub fn get(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at as u64 * 8).unwrap();
        word(&bytes, 0)
    }

    pub fn set(&self, at: usize, value: u64) {
        self.file.write_all_at(&value.to_le_bytes(), at as u64 * 8).unwrap();
    }

    /// A number as it could be there, or nearly.
    fn number(&mut self) -> u64 {
        let Anatomy { slots, heads, log_entries, .. } = self.anatomy;
        let (slots, heads, entries) = (slots as u64, heads as u64, log_entries as u64);
        let random = &mut self.random;
        let link = random.below(slots + 2);
        match random.below(13) {
            0 => random.next(),
            1 => u64::MAX,
            2 => 0,
            3 => random.below(5),
            4 => *random.pick(&[
                slots - 1,
                slots,
                slots + 1,
                heads,
                heads * 2,
                entries,
                entries * 4,
                255,
                256,
                257,
            ]),
            // Links with what else is said in their words.
            5 => link | random.next() << 32,
            6 => link,
            7 => link | link << 32,
            // States of all kinds: near, far, with numbers and blocks as they could be.
            8 => random.below(16) << 60 | random.next() >> 12,
            9 => random.below(16) << 60 | random.below(1 << 51),
            10 => random.below(entries + 1) << 42 | random.below(32) << 37 | random.below(1 << 37),
            // Chains with who holds them, and locks: the living, the dead, and nobody who can be.
            11 => link | *random.pick(&[1, 2, 3, 4, 7, 9, 2_000, 4_095]) << 32 | random.next() << 44,
            _ => random.next() << 16 | *random.pick(&[1, 2, 3, 4, 7, 9, 4_096, 4_097, 65_535]),
        }
    }

    fn damage(&mut self) {
        let part = self.random.below(self.anatomy.parts as u64) as usize;
        let within = match self.random.below(12) {
            0 | 1 => self.anatomy.control(part),
            2 => self.anatomy.journal(part),
            3 | 4 => self.anatomy.heads(part),
            5..=7 => self.anatomy.slots(part),
            8 => self.anatomy.marks(part),
            9 => self.anatomy.units(part),
            10 => self.anatomy.owners(),
            _ => self.anatomy.all(),
        };
        let at = within.start + self.random.below(within.len() as u64) as usize;
        match self.random.below(10) {
            0..=4 => {
                let number = self.number();
                self.set(at, number);
            }
            5 => {
                let bit = self.random.below(64);
                self.set(at, self.get(at) ^ 1 << bit);
            }
            6 => {
                let more = self.random.below(3);
                self.set(at, self.get(at).wrapping_add(more).wrapping_sub(1));
            }
            // What is there is also elsewhere.
            7 => {
                let from = within.start + self.random.below(within.len() as u64) as usize;
                self.set(at, self.get(from));
            }
            8 => {
                let to = within.end.min(at + 1 + self.random.below(64) as usize);
                for at in at..to {
                    let number = self.number();
                    self.set(at, number);
                }
            }
            _ => {
                let value = *self.random.pick(&[0, u64::MAX, 0x0101_0101_0101_0101]);
                within.for_each(|at| self.set(at, value));
            }
        }
        // Somebody seems to have died while he changed something.
        if self.random.one_in(4) {
            let control = self.anatomy.control(part);
            let lock = self.get(control.start) >> 16 << 16;
            let dead = *self.random.pick(&[9, 4_000, 4_096, 5_000, 65_535]);
            self.set(control.start, lock | dead);
            let stays =
                [(control::JOURNAL, 300), (control::LEAD, 5), (control::LEAD_VERSION, 9), (control::OPEN, 9)];
            for (at, most) in stays {
                // What a journal held before puts back locks of the living, too.
                if self.random.one_in(if at == control::JOURNAL { 16 } else { 2 }) {
                    let value = match self.random.below(3) {
                        0 => lock,
                        _ => self.random.below(most),
                    };
                    self.set(control.start + at, value);
                }
            }
        }
    }
}

/// One process, one thread: each round can be done again by its seed.
#[test]
fn damage_between_calls() {
    const TEST: &str = "damage::damage_between_calls";
    if let Some(role) = workers::role() {
        let [first, rounds] = [1, 2].map(|at| role[at].parse().unwrap());
        return fuzz(&Shared { path: (&role[0]).into() }, first, rounds);
    }
    let (shared, made) = (Shared::new("damage"), Shared::new("made"));
    // What hashes keys is the same each time.
    drop(Store::open(&made.uri(PARAMETERS)).unwrap());
    let bytes = anatomy::with(&std::fs::read(&made.path).unwrap(), 8, 1);
    put(&shared.path, &anatomy::with(&bytes, 9, 2));
    let (first, rounds) = (number("MIRAB_SEED", 1), number("MIRAB_FUZZ", 400));
    for from in (first..first + rounds).step_by(AT_ONCE as usize) {
        let rounds = AT_ONCE.min(first + rounds - from);
        let role = [shared.path.to_str().unwrap(), &from.to_string(), &rounds.to_string()];
        say(format_args!("seeds from {from}: {}", Worker::start(TEST, &role).end().join("\n")));
        put(&shared.path, &anatomy::with(&bytes, 9, 2));
    }
}

/// Rounds of one process, which is then asked how it ended.
const AT_ONCE: u64 = 100;

/// Tells the seed of a round that fails.
struct Round(u64);

impl Drop for Round {
    fn drop(&mut self) {
        if thread::panicking() {
            tell(format_args!("seed {}", self.0));
        }
    }
}

fn fuzz(shared: &Shared, first: u64, rounds: u64) {
    let store = Store::open(&shared.uri(PARAMETERS)).unwrap();
    let mut actor = Actor::new(&store);
    let mut random = Random(1);
    (0..500).for_each(|_| assert_eq!(actor.act(&mut random), Ok(())));
    let sound = std::fs::read(&shared.path).unwrap();
    let mut vandal = Vandal::new(shared, 0);
    let (mut stuck, mut mended) = (0, 0);
    for seed in first..first + rounds {
        let _round = Round(seed);
        vandal.random = Random(seed);
        let mut random = Random(seed ^ 0x5eed);
        vandal.file.write_all_at(&sound, 0).unwrap();
        let mut waited = 0;
        for _ in 0..1 + random.below(8) {
            (0..1 + random.below(6)).for_each(|_| vandal.damage());
            for _ in 0..random.below(40) {
                waited += u32::from(actor.act(&mut random) == Err(ErrorKind::StoreTimeout));
                if waited > 3 {
                    break;
                }
            }
        }
        // Forgetting all keys makes it whole, unless somebody holds a part who lives.
        // Each part is whole once its damage was met.
        let mut done = actor.mend();
        for _ in 0..8 {
            if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::StoreCorrupt) {
                done = actor.mend();
            }
        }
        match done {
            Ok(()) => mended += 1,
            Err(error) if error.kind() == ErrorKind::StoreTimeout => stuck += 1,
            Err(error) => panic!("seed {seed}: forgetting all does not help: {error}"),
        }
    }
    tell(format_args!(
        "{rounds} rounds, mended {mended}, held {stuck}, {:?}, {:?}",
        actor.errors, actor.slowest
    ));
    assert!(mended >= rounds / 4 || rounds < AT_ONCE, "nearly always somebody seems to hold a part");
}

/// Several processes decide in several threads while one overwrites; a new file makes all well.
#[test]
fn damage_while_others_decide() {
    const TEST: &str = "damage::damage_while_others_decide";
    if let Some(role) = workers::role() {
        return decide(&role[0]);
    }
    let shared = Shared::new("live");
    let mut all: Vec<Worker> = (0..2).map(|_| Worker::start(TEST, &[&shared.uri(PARAMETERS)])).collect();
    all.iter_mut().for_each(|it| assert_eq!(it.hears(), "decides"));
    let sound = std::fs::read(&shared.path).unwrap();
    let mut vandal = Vandal::new(&shared, number("MIRAB_SEED", 1));
    for round in 0..number("MIRAB_FUZZ", 400) {
        vandal.damage();
        thread::sleep(Duration::from_micros(vandal.random.below(2_000)));
        if round % 8 == 7 {
            // Or soon nothing but waiting would be tried.
            vandal.file.write_all_at(&sound, 0).unwrap();
        }
    }
    std::fs::remove_file(&shared.path).unwrap();
    all.iter_mut().for_each(Worker::go);
    for told in all.into_iter().flat_map(Worker::end) {
        say(format_args!("{told}"));
    }
}

fn decide(uri: &str) {
    let store = Store::open(uri).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let is_over = || stop.load(std::sync::atomic::Ordering::Relaxed);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|seed| {
                let mut actor = Actor::new(&store);
                scope.spawn(move || {
                    let mut random = Random(u64::from(std::process::id()) << 8 | seed);
                    let mut count = 0;
                    while !is_over() {
                        let _ = actor.act(&mut random);
                        count += 1;
                    }
                    (count, actor)
                })
            })
            .collect();
        tell("decides");
        let goes_on = may_go_on();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let all: Vec<(u32, Actor)> = threads.into_iter().map(|it| it.join().unwrap()).collect();
        if !goes_on {
            return;
        }
        // The file is gone: as soon as that is seen there is a new one.
        let begun = Instant::now();
        while let Err(error) = all[0].1.mend() {
            assert!(begun.elapsed() < Duration::from_secs(15), "a new file does not help: {error}");
        }
        for (count, actor) in all {
            tell(format_args!("{count} calls, {:?}, {:?}", actor.errors, actor.slowest));
        }
    });
}
