//! The time of reading limits and policies.
#![allow(missing_docs, clippy::unwrap_used)]

mod scenes;
mod time;

fn main() {
    time::group("notation");
}
