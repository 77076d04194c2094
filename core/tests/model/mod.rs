//! An independent, slow model: the same promises in big rational arithmetic, by the letter of their
//! definitions. Nothing here is shared with the library but the numbers.

mod bucket;
mod ending;
mod sliding;
mod window;

use std::collections::HashMap;

use num_bigint::BigInt;
use num_rational::BigRational;

pub use bucket::Bucket;
pub use ending::{Ending, Kind};
pub use sliding::Sliding;
pub use window::{Starts, Window};

pub type Rational = BigRational;

/// One limit's state for one key, and how it answers.
pub trait Model {
    /// Brings the state to `now`; true when whoever takes writes that back, whatever his answer.
    fn read(&mut self, now: u64) -> bool;
    fn admits(&self, now: u64, cost: u64) -> bool;
    /// Takes a cost that fits; `turn` names it.
    fn charge(&mut self, now: u64, cost: u64, turn: u64);
    fn capacity(&self) -> u64;
    fn used(&self, now: u64) -> u64;
    fn reset_after(&self, now: u64) -> u64;
    /// 0 when nothing is in use.
    fn next_after(&self, now: u64) -> u64;
    fn retry_after(&self, now: u64, cost: u64) -> u64;
    /// How long a request that was admitted with `taken` units (or would be) waits for its turn.
    fn delay(&self, _now: u64, _taken: u64) -> u64 {
        0
    }
    /// Ends the lease that was taken at the given turn; true when it still counted.
    fn release(&mut self, _now: u64, _turn: u64) -> bool {
        false
    }
    /// Whether it takes leases, and not a rate.
    fn is_leases(&self) -> bool {
        false
    }
    /// Takes what is there of a cost, at most to empty.
    fn force(&mut self, now: u64, cost: u64, turn: u64);
    /// Gives back up to `units` of what was taken; how many it gave.
    fn refund(&mut self, now: u64, units: u64, taken: &Taken) -> u64;
    /// A queue's instant of fullness as it is stored.
    fn full_at(&self) -> Option<(Rational, BigInt)> {
        None
    }
    /// A stretch of time in which much happens: a full drain, a window.
    fn span(&self) -> u64;
    fn boxed(&self) -> Box<dyn Model>;
    /// The same state under other numbers of the same named limit.
    fn renumber(&mut self, fresh: &dyn Model);
    fn as_any(&self) -> &dyn std::any::Any;
}

/// What an admitted request took.
#[derive(Clone, Debug)]
pub struct Taken {
    pub key: u64,
    pub turn: u64,
    pub at: u64,
    pub cost: u64,
    /// The last queue's instant of fullness after it.
    pub full_at: Option<(Rational, BigInt)>,
}

/// What is compared with the library's decision.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub blocked: bool,
    pub allowed: bool,
    pub never: bool,
    pub deciding: usize,
    pub retry_after: u64,
    pub delay: u64,
    pub standings: Vec<[u64; 5]>,
}

/// A policy over many keys.
pub struct Policy {
    fresh: Vec<Box<dyn Model>>,
    keys: HashMap<u64, Vec<Box<dyn Model>>>,
    blocks: HashMap<u64, u64>,
}

impl Policy {
    pub fn new(fresh: Vec<Box<dyn Model>>) -> Self {
        Self { fresh, keys: HashMap::new(), blocks: HashMap::new() }
    }

    /// How many leases of that turn still counted.
    pub fn release(&mut self, key: u64, now: u64, turn: u64) -> u64 {
        let limits = self.keys.get_mut(&key).into_iter().flatten();
        limits.map(|limit| u64::from(limit.release(now, turn))).sum()
    }

    pub fn reset(&mut self, key: u64) {
        self.keys.remove(&key);
        self.blocks.remove(&key);
    }

    pub fn block(&mut self, key: u64, end: u64) {
        self.blocks.insert(key, end);
    }

    pub fn unblock(&mut self, key: u64) {
        self.blocks.remove(&key);
    }

    /// What was just taken for a key.
    pub fn taken(&self, key: u64, turn: u64, at: u64, cost: u64) -> Taken {
        let queues = self.keys.get(&key).into_iter().flatten().rev();
        Taken { key, turn, at, cost, full_at: queues.filter_map(|limit| limit.full_at()).next() }
    }

    /// Gives back units of a rate, and of leases too where `leases`; the most that a limit gave.
    pub fn refund(&mut self, now: u64, units: u64, taken: &Taken, leases: bool) -> u64 {
        let mut most = 0;
        for limit in self.keys.get_mut(&taken.key).into_iter().flatten() {
            if units > 0 && (leases || !limit.is_leases()) {
                most = most.max(limit.refund(now, units, taken));
            }
        }
        most
    }

    /// Takes what is there of each rate.
    pub fn force(&mut self, key: u64, now: u64, cost: u64, turn: u64) {
        let fresh = &self.fresh;
        let stored = self.keys.entry(key).or_insert_with(|| fresh.iter().map(|it| it.boxed()).collect());
        stored.iter_mut().filter(|limit| !limit.is_leases()).for_each(|limit| limit.force(now, cost, turn));
    }

    pub fn renumber(&mut self, fresh: Vec<Box<dyn Model>>) {
        for limits in self.keys.values_mut() {
            for (limit, fresh) in limits.iter_mut().zip(&fresh) {
                limit.renumber(fresh.as_ref());
            }
        }
        self.fresh = fresh;
    }

    pub fn decide(&mut self, key: u64, now: u64, cost: u64, take: bool, turn: u64) -> Answer {
        if let Some(end) = self.blocks.get(&key).filter(|&&end| end > now) {
            let wait = end - now;
            let standings = vec![[0, 0, 0, wait, wait]];
            return Answer {
                blocked: true,
                allowed: false,
                never: false,
                deciding: 0,
                retry_after: wait,
                delay: 0,
                standings,
            };
        }
        let fresh = &self.fresh;
        let stored = self.keys.entry(key).or_insert_with(|| fresh.iter().map(|it| it.boxed()).collect());
        let mut limits: Vec<_> = stored.iter().map(|it| it.boxed()).collect();
        let future: Vec<bool> = limits.iter_mut().map(|it| it.read(now)).collect();
        let admits: Vec<bool> = limits.iter().map(|it| cost == 0 || it.admits(now, cost)).collect();
        let allowed = admits.iter().all(|&it| it);
        let taken = allowed && take && cost > 0;
        if taken {
            limits.iter_mut().for_each(|it| it.charge(now, cost, turn));
        }
        let taken_units = if taken { cost } else { 0 };
        let delay =
            if allowed { limits.iter().map(|it| it.delay(now, taken_units)).max().unwrap_or(0) } else { 0 };
        let mut ranks = Vec::new();
        let mut standings = Vec::new();
        for (limit, &admits) in limits.iter().zip(&admits) {
            let used = limit.used(now);
            let remaining = limit.capacity().saturating_sub(used);
            let never = !admits && cost > limit.capacity();
            let wait = if admits || never { 0 } else { limit.retry_after(now, cost) };
            ranks.push((never, wait, u64::MAX - remaining));
            standings.push([
                limit.capacity(),
                used,
                remaining,
                limit.reset_after(now),
                limit.next_after(now),
            ]);
        }
        let mut deciding = 0;
        for (index, rank) in ranks.iter().enumerate() {
            if *rank > ranks[deciding] {
                deciding = index;
            }
        }
        let (never, retry_after, _) = ranks[deciding];
        for ((stored, limit), future) in stored.iter_mut().zip(limits).zip(future) {
            if taken || (take && cost > 0 && future) {
                *stored = limit;
            }
        }
        Answer { blocked: false, allowed, never, deciding, retry_after, delay, standings }
    }
}

pub fn rational(number: u64) -> Rational {
    Rational::from_integer(BigInt::from(number))
}

pub fn ceil(number: &Rational) -> u64 {
    u64::try_from(number.ceil().to_integer()).unwrap_or(0)
}
