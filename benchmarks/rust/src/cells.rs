//! Which contender stands in which scenario, and its state, made when it is first asked for.

use std::collections::HashMap;
use std::time::Duration;

use crate::Outcome;
use crate::contenders::{self, Limit};
use crate::keys;
use crate::processes::Processes;
use crate::slot::{Measured, Slot};

pub struct Scenario {
    pub name: &'static str,
    pub contenders: &'static [&'static str],
    keys: usize,
    threads: usize,
    limits: &'static [Limit],
}

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// So much that it never refuses, and so slow that one busy key's bucket is never full again.
const LARGE: &[Limit] = &[Limit { amount: 1_000_000_000, seconds: HOUR }];
/// The same for some keys, and for many: what is held of a key is alive when its turn comes again.
pub const SLOWER: &[Limit] = &[Limit { amount: 10_000_000, seconds: 20 * DAY }];
pub const LASTING: &[Limit] = &[Limit { amount: 10_000, seconds: 20 * DAY }];
const USED_UP: &[Limit] = &[Limit { amount: 1, seconds: HOUR }];

/// Limits of one key that are decided together.
const POLICY: &[Limit] = &[
    Limit { amount: 1_000_000_000, seconds: MINUTE },
    Limit { amount: 1_000_000_000, seconds: HOUR },
    Limit { amount: 1_000_000_000, seconds: DAY },
    Limit { amount: 1_000_000_000, seconds: 2 * DAY },
    Limit { amount: 1_000_000_000, seconds: 7 * DAY },
    Limit { amount: 1_000_000_000, seconds: 14 * DAY },
    Limit { amount: 1_000_000_000, seconds: 30 * DAY },
];

const OURS: &[&str] = &["mirab.allow", "mirab.acquire", "shm.allow", "shm.acquire"];
const ONE_KEY: &[&str] = &[
    "mirab.allow",
    "mirab.acquire",
    "shm.allow",
    "shm.acquire",
    "governor-hashmap",
    "governor-dashmap",
    "governor-direct",
    "atomic+clock",
];
const MANY_KEYS: &[&str] =
    &["mirab.allow", "mirab.acquire", "shm.allow", "shm.acquire", "governor-hashmap", "governor-dashmap"];
/// Processes, and not threads.
const PROCESSES: &[&str] = &["shm.1-process", "shm.2-processes"];
const GROWTH: &[&str] = &["mirab.allow", "governor-hashmap"];

const fn scenario(
    name: &'static str,
    contenders: &'static [&'static str],
    keys: usize,
    threads: usize,
    limits: &'static [Limit],
) -> Scenario {
    Scenario { name, contenders, keys, threads, limits }
}

pub const SCENARIOS: &[Scenario] = &[
    scenario("hot", ONE_KEY, 1, 1, LARGE),
    scenario("hot_2t", ONE_KEY, 1, 2, LARGE),
    scenario("denied", ONE_KEY, 1, 1, USED_UP),
    scenario("denied_2t", ONE_KEY, 1, 2, USED_UP),
    scenario("keys_100k", MANY_KEYS, 100_000, 1, LASTING),
    scenario("keys_100k_2t", MANY_KEYS, 100_000, 2, LASTING),
    scenario("policy_1", OURS, 1, 1, POLICY.split_at(1).0),
    scenario("policy_3", OURS, 1, 1, POLICY.split_at(3).0),
    scenario("processes", PROCESSES, 1, 1, LASTING),
    scenario("growth_keys_1", GROWTH, 1, 1, LARGE),
    scenario("growth_keys_10", GROWTH, 10, 1, SLOWER),
    scenario("growth_keys_100", GROWTH, 100, 1, SLOWER),
    scenario("growth_keys_1k", GROWTH, 1_000, 1, SLOWER),
    scenario("growth_keys_10k", GROWTH, 10_000, 1, SLOWER),
    scenario("growth_keys_100k", GROWTH, 100_000, 1, LASTING),
    scenario("growth_keys_1m", GROWTH, 1_000_000, 1, LASTING),
    scenario("growth_limits_1", &["mirab.allow"], 1, 1, POLICY.split_at(1).0),
    scenario("growth_limits_2", &["mirab.allow"], 1, 1, POLICY.split_at(2).0),
    scenario("growth_limits_3", &["mirab.allow"], 1, 1, POLICY.split_at(3).0),
    scenario("growth_limits_4", &["mirab.allow"], 1, 1, POLICY.split_at(4).0),
    scenario("growth_limits_5", &["mirab.allow"], 1, 1, POLICY.split_at(5).0),
    scenario("growth_limits_6", &["mirab.allow"], 1, 1, POLICY.split_at(6).0),
    scenario("growth_limits_7", &["mirab.allow"], 1, 1, POLICY),
];

#[derive(Default)]
pub struct Cells {
    cells: HashMap<(&'static str, &'static str), Cell>,
    keys: keys::Cache,
}

/// A contender in a scenario.
pub enum Cell {
    Slot(Slot),
    Processes(Processes),
}

impl Cell {
    pub fn measure(&mut self, time: Duration) -> Outcome<Measured> {
        match self {
            Self::Slot(slot) => slot.measure(time),
            Self::Processes(processes) => {
                processes.measure(time / 10)?;
                processes.measure(time)
            }
        }
    }
}

impl Cells {
    pub fn get(&mut self, scenario: &str, contender: &str) -> Outcome<&mut Cell> {
        let found = SCENARIOS.iter().find(|it| it.name == scenario);
        let scenario = found.ok_or_else(|| format!("unknown scenario {scenario:?}"))?;
        let found = scenario.contenders.iter().find(|it| **it == contender);
        let contender = found.ok_or_else(|| format!("{} has no contender {contender:?}", scenario.name))?;
        let name = (scenario.name, *contender);
        if !self.cells.contains_key(&name) {
            let cell = match *contender {
                "shm.1-process" => Cell::Processes(Processes::new(1)?),
                "shm.2-processes" => Cell::Processes(Processes::new(2)?),
                _ => {
                    let asked = contenders::make(contender, scenario.limits)?;
                    let admitted = scenario.limits.iter().all(|limit| limit.amount > 1);
                    let keys = self.keys.get(scenario.keys);
                    Cell::Slot(Slot::new(asked, keys, scenario.threads, admitted)?)
                }
            };
            self.cells.insert(name, cell);
        }
        self.cells.get_mut(&name).ok_or_else(|| "it was made just now".into())
    }
}
