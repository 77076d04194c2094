//! The time of the limiter on a memory store.
#![allow(missing_docs, clippy::unwrap_used)]

mod scenes;
mod time;

fn main() {
    time::group("limiter");
}
