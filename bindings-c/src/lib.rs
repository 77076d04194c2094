//! The C face of mirab: every function converts its arguments, calls one method of the
//! core and maps the error. `include/mirab.h` is generated from these files.

// Names are those of the header.
#![allow(non_camel_case_types)]
// What callers owe to each pointer is said once, at the top of the header.
#![allow(clippy::missing_safety_doc)]

// How every function crosses the border.
mod ffi;
mod guard;
mod origin;

// What the header shows, in its order; the blank lines keep them unsorted.
mod version;

mod error;

mod limit;

mod clock;

mod options;

mod decision;

mod limiter;

mod standing;

mod many;

mod wait;

mod settle;

mod block;

mod stats;

mod health;

mod news;

mod clients;

mod answers;

mod answer;

pub use answer::*;
pub use answers::*;
pub use block::*;
pub use clients::*;
pub use clock::*;
pub use decision::*;
pub use error::*;
pub use health::*;
pub use limit::*;
pub use limiter::*;
pub use many::*;
pub use news::*;
pub use options::*;
pub use settle::*;
pub use standing::*;
pub use stats::*;
pub use version::*;
pub use wait::*;
