//! The scenes of `../scenes`, repeated so often as is asked: `scripts/instructions.py` counts their
//! instructions.
//!
//! ```text
//! instructions               lists the scenes
//! instructions SCENE TIMES   makes SCENE ready and repeats it so often
//! ```
#![allow(missing_docs, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../scenes/mod.rs"]
mod scenes;

use std::env;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let mut named = scenes::groups().into_iter().flat_map(|(group, scenes)| {
        scenes.into_iter().map(move |(name, ready)| (format!("{group}/{name}"), ready))
    });
    match arguments.as_slice() {
        [] => named.for_each(|(name, _)| println!("{name}")),
        [wanted, times] => {
            let ready = named.find(|(name, _)| name == wanted).map(|(_, ready)| ready);
            let mut operation = ready.unwrap_or_else(|| panic!("no scene is named {wanted:?}"))();
            assert!(repeated(&mut operation, times.parse().unwrap()), "{wanted} does not go as it should");
        }
        _ => panic!("instructions [SCENE TIMES], not {arguments:?}"),
    }
}

/// What is counted, found by its name: not what makes a scene ready.
#[inline(never)]
fn repeated(operation: &mut scenes::Operation, times: u32) -> bool {
    (0..times).fold(true, |went_well, _| operation() && went_well)
}
