//! The time of each algorithm.
#![allow(missing_docs, clippy::unwrap_used)]

mod scenes;
mod time;

fn main() {
    time::group("algorithms");
}
