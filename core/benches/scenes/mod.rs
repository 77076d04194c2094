//! What is measured: operations of the public interface, each made ready under a name.
//!
//! `time.rs` measures how long they take, `instructions.rs` how many instructions: both take them from here.

mod algorithms;
mod http;
mod limiter;
mod notation;
#[cfg(feature = "shm")]
mod shm;

use mirab::{Limiter, Policy};

/// A repeatable operation; true when it went as its scene says.
pub type Operation = Box<dyn FnMut() -> bool>;

/// A name, and what makes its operation ready.
pub type Scene = (String, Box<dyn Fn() -> Operation>);

/// The scenes of each group, in the order of the reports.
pub fn groups() -> Vec<(&'static str, Vec<Scene>)> {
    vec![
        ("notation", notation::scenes()),
        ("limiter", limiter::scenes()),
        ("algorithms", algorithms::scenes()),
        ("http", http::scenes()),
        #[cfg(feature = "shm")]
        ("shm", shm::scenes()),
    ]
}

fn scene(name: impl Into<String>, ready: impl Fn() -> Operation + 'static) -> Scene {
    (name.into(), Box::new(ready))
}

/// A limiter on a memory store of its own, by the system's clock.
fn limiter(policy: &str) -> Limiter {
    Limiter::builder(Policy::parse(policy).unwrap()).build().unwrap()
}
