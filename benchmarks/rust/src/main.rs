//! The worker of the class rust-memory: mirab in memory and in shared memory, governor, and the least that any
//! limiter must do.
//!
//! What it says and answers stands in `benchmarks/README.md`.

mod alone;
mod cells;
mod contenders;
mod keys;
mod processes;
mod slot;

use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Duration;

use serde_json::{Value, json};

use cells::{Cells, SCENARIOS};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let asked = match arguments[..] {
        [] => return serve(),
        ["--member", uri, number] => return processes::member(uri, number),
        ["--bytes", contender, keys] => {
            keys.parse().map_err(Into::into).and_then(|it| alone::bytes(contender, it))
        }
        ["--fresh", contender, keys] => {
            keys.parse().map_err(Into::into).and_then(|it| alone::fresh(contender, it))
        }
        _ => Err("usage: mirab-bench [--bytes|--fresh CONTENDER KEYS]".into()),
    };
    say(&asked.unwrap_or_else(|error| json!({"error": error.to_string()})))
}

/// Answers each line until there are no more.
fn serve() -> Outcome<()> {
    say(&hello())?;
    let mut cells = Cells::default();
    for line in std::io::stdin().lock().lines() {
        let answer = answer(&mut cells, &line?);
        say(&answer.unwrap_or_else(|error| json!({"error": error.to_string()})))?;
    }
    Ok(())
}

fn answer(cells: &mut Cells, line: &str) -> Outcome<Value> {
    let question: Value = serde_json::from_str(line)?;
    let text = |name: &str| question[name].as_str().ok_or(format!("{name} is missing in {line}"));
    let ms = question["ms"]
        .as_f64()
        .filter(|ms| (0.001..60_000.0).contains(ms))
        .ok_or("ms must be 0.001 to 60000")?;
    let measured =
        cells.get(text("scenario")?, text("contender")?)?.measure(Duration::from_secs_f64(ms / 1e3))?;
    Ok(json!({"ns": measured.ns, "count": measured.count}))
}

fn hello() -> Value {
    let contenders: serde_json::Map<String, Value> = contenders::ALL
        .iter()
        .map(|it| (it.name.to_owned(), json!({"kind": it.kind, "note": it.note})))
        .collect();
    let cells: Vec<Value> = SCENARIOS
        .iter()
        .flat_map(|scenario| {
            scenario.contenders.iter().map(|it| json!({"scenario": scenario.name, "contender": it}))
        })
        .collect();
    json!({
        "class": "rust-memory",
        "versions": {"mirab": locked("mirab"), "governor": locked("governor"), "quanta": locked("quanta")},
        "contenders": contenders,
        "cells": cells,
        "bytes": alone::CONTENDERS,
        "fresh": alone::CONTENDERS,
    })
}

/// The version of a crate that this program was built with.
fn locked(name: &str) -> Option<&'static str> {
    let (_, rest) = include_str!("../Cargo.lock").split_once(&format!("name = \"{name}\"\nversion = \""))?;
    rest.split('"').next()
}

fn say(what: &Value) -> Outcome<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{what}")?;
    Ok(stdout.flush()?)
}
