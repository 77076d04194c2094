//! What drives the loops of this thread. A loop belongs to one thread at a time; one that moves to another
//! thread gets a driver of its own there.

use std::cell::RefCell;

use mirab::Limiter;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use super::driven::Driven;

thread_local!(static HERE: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) });

/// Both are held by nobody here: the loop holds what it calls, and ends with it.
struct Entry {
    /// Where the loop is, or was: that is quicker to compare.
    address: usize,
    event_loop: Py<PyWeakrefReference>,
    driven: Py<PyWeakrefReference>,
}

/// The loop that runs in this thread; `RuntimeError` where none does.
pub fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    RUNNING.import(py, "asyncio", "get_running_loop")?.call0()
}

/// What drives the requests of this loop, the running one, to the store of `limiter`.
pub fn driven<'py>(event_loop: &Bound<'py, PyAny>, limiter: &Limiter) -> PyResult<Bound<'py, Driven>> {
    let found = HERE.with_borrow(|here| here.iter().find_map(|entry| entry.of(event_loop, limiter)));
    if let Some(driven) = found {
        return Ok(driven);
    }
    let driven = Driven::begin(event_loop, limiter)?;
    let entry = Entry {
        address: event_loop.as_ptr() as usize,
        event_loop: PyWeakrefReference::new(event_loop)?.unbind(),
        driven: PyWeakrefReference::new(driven.as_any())?.unbind(),
    };
    // Not in its place: what is dropped may run code that comes by here.
    let mut entries = HERE.take();
    entries.retain(|entry| entry.is_alive(event_loop.py()));
    entries.push(entry);
    HERE.set(entries);
    Ok(driven)
}

impl Entry {
    fn of<'py>(&self, event_loop: &Bound<'py, PyAny>, limiter: &Limiter) -> Option<Bound<'py, Driven>> {
        let py = event_loop.py();
        let is_here = self.address == event_loop.as_ptr() as usize
            && self.event_loop.bind(py).upgrade().is_some_and(|ours| ours.is(event_loop));
        if !is_here {
            return None;
        }
        let driven = self.driven.bind(py).upgrade()?.cast_into::<Driven>().ok()?;
        driven.get().serves(limiter).then_some(driven)
    }

    fn is_alive(&self, py: Python<'_>) -> bool {
        self.driven.bind(py).upgrade().is_some()
    }
}
