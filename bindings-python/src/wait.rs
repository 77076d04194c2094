//! Sleeping as Python's threads do: without the GIL, and so that Ctrl-C is heard.

use std::time::{Duration, Instant};

use mirab::{Limiter, Result};
use pyo3::prelude::*;

use crate::error::raise;

/// How long the main thread sleeps before it looks for signals, which only it handles.
const DEAF: Duration = Duration::from_millis(50);

/// Sleeps so long; earlier it ends with `Closed`, or with what a signal's handler raises.
pub fn sleep(py: Python<'_>, limiter: &Limiter, time: Duration) -> PyResult<()> {
    let piece = if is_main_thread(py)? { DEAF } else { time };
    let begun = Instant::now();
    loop {
        let left = time.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let slept: Result<()> = py.detach(|| limiter.sleep(left.min(piece)));
        slept.map_err(raise)?;
        py.check_signals()?;
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let current = threading.call_method0("get_ident")?;
    threading.call_method0("main_thread")?.getattr("ident")?.eq(current)
}
