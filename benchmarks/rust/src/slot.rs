//! One slot: a contender asked again and again for so long, by one thread or more at once.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::contenders::Contender;
use crate::keys::{Keys, ORDER};

/// Decisions between two looks at the clock, so that looking costs nothing.
const BATCH: usize = 512;

pub struct Measured {
    /// Wall time divided by the decisions of all threads.
    pub ns: f64,
    pub count: u64,
}

/// What one thread did.
struct Run {
    begun: Instant,
    ended: Instant,
    count: u64,
    admitted: u64,
}

/// A contender whose loop is compiled for it alone: choosing it costs one call a slot, not one a decision.
pub trait Asked: Send + Sync {
    fn once(&self, keys: &Keys, index: usize) -> bool;
    fn run(&self, keys: &Keys, from: usize, time: Duration) -> (u64, u64);
}

impl<C: Contender> Asked for C {
    fn once(&self, keys: &Keys, index: usize) -> bool {
        self.admits(&keys.all[index])
    }

    fn run(&self, keys: &Keys, from: usize, time: Duration) -> (u64, u64) {
        match &keys.order {
            None => self::run(time, |_| self.admits(black_box(&keys.all[0]))),
            Some(order) => self::run(time, |number| {
                let index = order[from.wrapping_add(number) % ORDER];
                self.admits(black_box(&keys.all[index as usize]))
            }),
        }
    }
}

#[inline(always)]
fn run(time: Duration, ask: impl Fn(usize) -> bool) -> (u64, u64) {
    let deadline = Instant::now() + time;
    let (mut count, mut admitted) = (0, 0);
    loop {
        for number in count..count + BATCH {
            admitted += u64::from(ask(number));
        }
        count += BATCH;
        if Instant::now() >= deadline {
            return (count as u64, admitted);
        }
    }
}

/// A contender in a scenario, with its state.
pub struct Slot {
    pub contender: Box<dyn Asked>,
    pub keys: Keys,
    pub threads: usize,
    pub admitted: bool,
    from: usize,
}

impl Slot {
    /// Makes every key known. A scenario that refuses uses up what there is.
    pub fn new(contender: Box<dyn Asked>, keys: Keys, threads: usize, admitted: bool) -> Outcome<Self> {
        for index in 0..keys.all.len() {
            if !contender.once(&keys, index) && admitted {
                return Err(format!("the first decision for key {index} was a refusal").into());
            }
        }
        Ok(Self { contender, keys, threads, admitted, from: 0 })
    }

    pub fn measure(&mut self, time: Duration) -> Outcome<Measured> {
        let start = Barrier::new(self.threads);
        let runs: Vec<Run> = if self.threads == 1 {
            vec![self.thread(0, time, &start)]
        } else {
            thread::scope(|scope| {
                let threads: Vec<_> = (0..self.threads)
                    .map(|number| {
                        scope.spawn({
                            let (slot, start) = (&*self, &start);
                            move || slot.thread(number, time, start)
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .map(|it| it.join().map_err(|_| "a thread panicked"))
                    .collect::<Result<_, _>>()
            })?
        };
        let begun = runs.iter().map(|run| run.begun).min().ok_or("no thread ran")?;
        let ended = runs.iter().map(|run| run.ended).max().ok_or("no thread ran")?;
        let (count, admitted) = runs.iter().fold((0, 0), |(a, b), run| (a + run.count, b + run.admitted));
        let expected = if self.admitted { count } else { 0 };
        if admitted != expected {
            return Err(format!("{admitted} of {count} were admitted: it must be {expected}").into());
        }
        self.from = self.from.wrapping_add(count as usize);
        Ok(Measured { ns: (ended - begun).as_nanos() as f64 / count as f64, count })
    }

    /// Each thread walks through an order of its own.
    fn thread(&self, number: usize, time: Duration, start: &Barrier) -> Run {
        let from = self.from + number * (ORDER / self.threads);
        self.contender.run(&self.keys, from, time / 10);
        start.wait();
        let begun = Instant::now();
        let (count, admitted) = self.contender.run(&self.keys, from, time);
        Run { begun, ended: Instant::now(), count, admitted }
    }
}
