//! The time of the limiter on shared memory.
#![allow(missing_docs, clippy::unwrap_used)]

mod scenes;
mod time;

fn main() {
    time::group("shm");
}
