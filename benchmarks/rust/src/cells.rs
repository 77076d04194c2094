//! Which contender stands in which scenario, and its state, made when it is first asked for.

use std::collections::HashMap;

use crate::Outcome;
use crate::contenders::{self, Limits};
use crate::keys;
use crate::slot::Slot;

pub struct Scenario {
    pub name: &'static str,
    pub contenders: &'static [&'static str],
    keys: usize,
    threads: usize,
    limits: Limits,
}

/// So much that it never refuses in a run, and so slow to come back that every key's state stays alive.
pub const LARGE: Limits = large("1000000000/hour");
const USED_UP: Limits = Limits { notation: "1/hour", per_hour: 1 };

const OURS: &[&str] = &["mirab.allow", "mirab.acquire"];
const ONE_KEY: &[&str] = &[
    "mirab.allow",
    "mirab.acquire",
    "governor-hashmap",
    "governor-dashmap",
    "governor-direct",
    "atomic+clock",
];
const MANY_KEYS: &[&str] = &["mirab.allow", "mirab.acquire", "governor-hashmap", "governor-dashmap"];
const GROWTH: &[&str] = &["mirab.allow", "governor-hashmap"];

/// Limits of one key that are decided together; the first `N` of them are `growth_limits_N`.
const POLICIES: [&str; 7] = [
    "1000000000/minute",
    "1000000000/minute; 1000000000/hour",
    "1000000000/minute; 1000000000/hour; 1000000000/day",
    "1000000000/minute; 1000000000/hour; 1000000000/day; 1000000000/week",
    "1000000000/minute; 1000000000/hour; 1000000000/day; 1000000000/week; 1000000000 per 2 weeks",
    "1000000000/minute; 1000000000/hour; 1000000000/day; 1000000000/week; 1000000000 per 2 weeks; 1000000000/month",
    "1000000000/minute; 1000000000/hour; 1000000000/day; 1000000000/week; 1000000000 per 2 weeks; 1000000000/month; \
     1000000000/year",
];

const fn large(notation: &'static str) -> Limits {
    Limits { notation, per_hour: 1_000_000_000 }
}

const fn scenario(
    name: &'static str,
    contenders: &'static [&'static str],
    keys: usize,
    threads: usize,
    limits: Limits,
) -> Scenario {
    Scenario { name, contenders, keys, threads, limits }
}

pub const SCENARIOS: &[Scenario] = &[
    scenario("hot", ONE_KEY, 1, 1, LARGE),
    scenario("hot_2t", ONE_KEY, 1, 2, LARGE),
    scenario("denied", ONE_KEY, 1, 1, USED_UP),
    scenario("denied_2t", ONE_KEY, 1, 2, USED_UP),
    scenario("keys_100k", MANY_KEYS, 100_000, 1, LARGE),
    scenario("keys_100k_2t", MANY_KEYS, 100_000, 2, LARGE),
    scenario("policy_1", OURS, 1, 1, large(POLICIES[0])),
    scenario("policy_3", OURS, 1, 1, large(POLICIES[2])),
    scenario("growth_keys_1", GROWTH, 1, 1, LARGE),
    scenario("growth_keys_10", GROWTH, 10, 1, LARGE),
    scenario("growth_keys_100", GROWTH, 100, 1, LARGE),
    scenario("growth_keys_1k", GROWTH, 1_000, 1, LARGE),
    scenario("growth_keys_10k", GROWTH, 10_000, 1, LARGE),
    scenario("growth_keys_100k", GROWTH, 100_000, 1, LARGE),
    scenario("growth_keys_1m", GROWTH, 1_000_000, 1, LARGE),
    scenario("growth_limits_1", &["mirab.allow"], 1, 1, large(POLICIES[0])),
    scenario("growth_limits_2", &["mirab.allow"], 1, 1, large(POLICIES[1])),
    scenario("growth_limits_3", &["mirab.allow"], 1, 1, large(POLICIES[2])),
    scenario("growth_limits_4", &["mirab.allow"], 1, 1, large(POLICIES[3])),
    scenario("growth_limits_5", &["mirab.allow"], 1, 1, large(POLICIES[4])),
    scenario("growth_limits_6", &["mirab.allow"], 1, 1, large(POLICIES[5])),
    scenario("growth_limits_7", &["mirab.allow"], 1, 1, large(POLICIES[6])),
];

#[derive(Default)]
pub struct Cells {
    slots: HashMap<(&'static str, &'static str), Slot>,
    keys: keys::Cache,
}

impl Cells {
    pub fn get(&mut self, scenario: &str, contender: &str) -> Outcome<&mut Slot> {
        let found = SCENARIOS.iter().find(|it| it.name == scenario);
        let scenario = found.ok_or_else(|| format!("unknown scenario {scenario:?}"))?;
        let found = scenario.contenders.iter().find(|it| **it == contender);
        let contender = found.ok_or_else(|| format!("{} has no contender {contender:?}", scenario.name))?;
        let cell = (scenario.name, *contender);
        if !self.slots.contains_key(&cell) {
            let asked = contenders::make(contender, scenario.limits)?;
            let admitted = scenario.limits.per_hour > 1;
            self.slots
                .insert(cell, Slot::new(asked, self.keys.get(scenario.keys), scenario.threads, admitted)?);
        }
        self.slots.get_mut(&cell).ok_or_else(|| "it was made just now".into())
    }
}
