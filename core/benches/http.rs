//! The time of finding out who is asking, and of telling him.
#![allow(missing_docs, clippy::unwrap_used)]

mod scenes;
mod time;

fn main() {
    time::group("http");
}
