//! What takes a process of its own: bytes per key, and the time of each decision for a new key.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use crate::Outcome;
use crate::cells::LASTING;
use crate::contenders;
use crate::keys::{self, Keys};

pub const CONTENDERS: &[&str] = &["mirab.allow", "governor-hashmap", "governor-dashmap"];

pub fn bytes(contender: &str, count: usize) -> Outcome<Value> {
    let keys = new_keys(count);
    let asked = contenders::make(contender, LASTING)?;
    asked.once(&keys, 0);
    let before = resident()?;
    for index in 1..=count {
        if !asked.once(&keys, index) {
            return Err(format!("key {index} was refused").into());
        }
    }
    let grown = resident()?.saturating_sub(before);
    Ok(json!({"bytes_per_key": grown as f64 / count as f64}))
}

/// Nanoseconds, one reading of the clock included.
pub fn fresh(contender: &str, count: usize) -> Outcome<Value> {
    let keys = new_keys(count);
    let asked = contenders::make(contender, LASTING)?;
    asked.once(&keys, 0);
    let mut times = vec![1_u64; count];
    for (index, time) in (1..).zip(&mut times) {
        let begun = Instant::now();
        let admitted = asked.once(&keys, index);
        *time = begun.elapsed().as_nanos() as u64;
        if !admitted {
            return Err(format!("key {index} was refused").into());
        }
    }
    let mean = times.iter().sum::<u64>() as f64 / count as f64;
    times.sort_unstable();
    Ok(json!({"p50": times[count / 2], "p99": times[count / 100 * 99], "max": times[count - 1], "ns": mean}))
}

/// Number 0 is asked for before the rest, for what happens only once.
fn new_keys(count: usize) -> Keys {
    Keys { all: keys::make(0, count + 1).into(), order: None }
}

/// The bytes of this process that are in memory.
fn resident() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}
