//! The store on its bad day: whatever becomes of it, no call takes longer than the deadline, none is an
//! error unless that is wished, and decisions return to the store by themselves.
//!
//! `MIRAB_OUTAGE_MS` makes outages longer.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod flapping;
mod network;
mod outage;
mod server;

use std::time::Duration;

use common::load::TOLERANCE;
use common::say;

/// A probe goes out 312 ms after the last one at most, which may have waited for 500 ms; then one
/// caller tries.
const RETURN: Duration = Duration::from_millis(900);

/// That decisions returned to the store soon after it was well again.
fn check_return(scene: &str, returned: Duration) {
    say(format_args!(
        "{scene}: decided by the store again {returned:?} after it was well (bound {RETURN:?})"
    ));
    assert!(returned <= TOLERANCE * RETURN, "{scene}: decided by the store again only after {returned:?}");
}
