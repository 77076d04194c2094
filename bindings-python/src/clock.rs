//! Clocks that are given to a limiter: a manual one, a callable, or the interpreter's `time.time`.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mirab::{Clock, Error, ErrorKind, ManualClock, Time};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;

use crate::convert::{MOST_US, Micros, shown, span};
use crate::error::{invalid_argument, raise};

/// A clock for tests, moved by hand. It may be shared by limiters and threads.
#[pyclass(frozen, module = "mirab", name = "ManualClock")]
pub struct PyManualClock(ManualClock);

#[pymethods]
impl PyManualClock {
    /// Stands at `start_us` microseconds since 1970.
    #[new]
    #[pyo3(signature = (start_us=Micros(0)), text_signature = "(start_us=0)")]
    fn new(start_us: Micros) -> PyResult<Self> {
        ManualClock::new(start_us.0).map(Self).map_err(raise)
    }

    /// Moves the clock forward by seconds (to the nearest microsecond) or a `timedelta`.
    fn advance(&self, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let us = span("advance", seconds)?.as_micros();
        let us = u64::try_from(us).unwrap_or(u64::MAX);
        self.0.advance_us(us).map_err(raise)
    }

    /// Moves the clock forward by whole microseconds.
    fn advance_us(&self, n: Micros) -> PyResult<()> {
        self.0.advance_us(n.0).map_err(raise)
    }

    /// Sets the time in microseconds since 1970, backwards too.
    fn set_us(&self, n: Micros) -> PyResult<()> {
        self.0.set_us(n.0).map_err(raise)
    }

    /// The time it shows, in microseconds since 1970.
    #[getter]
    fn now_us(&self) -> u64 {
        self.0.now_us()
    }

    fn __repr__(&self) -> String {
        format!("ManualClock({})", self.0.now_us())
    }
}

/// A clock of the interpreter's. It is read with the GIL held, before a decision gives it up.
pub enum HostClock {
    /// Returns the seconds since 1970.
    Callable(Py<PyAny>),
    /// The module `time`; its `time` is looked up at each reading, since test tools replace it.
    Module(Py<PyModule>),
}

impl HostClock {
    /// Reads it once. What the callable raises is passed on as it is.
    pub fn read(&self, py: Python<'_>) -> PyResult<Time> {
        Time::given_us(self.read_us(py)?).map_err(raise)
    }

    /// Tells the garbage collector what is called: a method, it may be, of what holds the limiter.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Callable(read) => visit.call(read),
            Self::Module(_) => Ok(()),
        }
    }

    /// Reads it for the core, which knows no exceptions: what is raised waits here for `raised`.
    fn read_for_core(&self) -> mirab::Result<u64> {
        Python::attach(|py| self.read_us(py)).map_err(|raised| {
            let error = Error::new(ErrorKind::InvalidArgument, format!("the clock failed: {raised}"));
            RAISED.set(Some(raised));
            error
        })
    }

    fn read_us(&self, py: Python<'_>) -> PyResult<u64> {
        let now = match self {
            Self::Callable(read) => read.bind(py).call0()?,
            Self::Module(time) => time.bind(py).call_method0(intern!(py, "time"))?,
        };
        match now.extract::<f64>() {
            Ok(seconds) if (0.0..=MOST_US as f64 / 1e6).contains(&seconds) => {
                Ok((seconds * 1e6).round() as u64)
            }
            _ => Err(invalid_argument(format!(
                "the clock returned {}: it must be a number of seconds since 1970, at most 2^52 microseconds",
                shown(&now)
            ))),
        }
    }
}

/// The clock of a limiter, in the core and, when the interpreter has to read it, here.
pub fn choose(given: Option<&Bound<'_, PyAny>>, py: Python<'_>) -> PyResult<(Clock, Option<Arc<HostClock>>)> {
    let host = match given {
        None if !environment_asks_for_host()? => return Ok((Clock::System, None)),
        None => {
            warn_once(py)?;
            HostClock::Module(py.import("time")?.unbind())
        }
        Some(clock) => {
            if let Ok(manual) = clock.cast::<PyManualClock>() {
                return Ok((manual.get().0.clone().into(), None));
            }
            if !clock.is_callable() {
                return Err(invalid_argument(format!(
                    "clock {}: it must be None, a ManualClock or a callable that returns the seconds since 1970",
                    shown(clock)
                )));
            }
            HostClock::Callable(clock.clone().unbind())
        }
    };
    let host = Arc::new(host);
    let core = Arc::clone(&host);
    Ok((Clock::host(move || core.read_for_core()), Some(host)))
}

thread_local!(static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) });

/// The exception that a clock raised while this thread was in the core, which passes on as it is.
pub fn raised() -> Option<PyErr> {
    RAISED.take()
}

fn environment_asks_for_host() -> PyResult<bool> {
    match std::env::var("MIRAB_CLOCK").as_deref() {
        Err(_) | Ok("" | "system") => Ok(false),
        Ok("host") => Ok(true),
        Ok(other) => Err(invalid_argument(format!("MIRAB_CLOCK={other}: it must be \"host\" or \"system\""))),
    }
}

fn warn_once(py: Python<'_>) -> PyResult<()> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if WARNED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    py.import("logging")?
        .call_method1("getLogger", ("mirab",))?
        .call_method1("warning", ("MIRAB_CLOCK=host: limiters read time.time, which is meant for tests",))?;
    Ok(())
}
