//! A driver in an event loop of asyncio.

use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mirab::{BareDecision, Driver, Error, ErrorKind, Limiter, Watch};
use pyo3::exceptions::PyNotImplementedError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use slab::Slab;

use super::here::running_loop;
use super::wanted::Wanted;
use crate::convert::key_bytes;
use crate::error::raise;
use crate::limiter::PyLimiter;
use crate::news;

/// How much earlier than a timer one must be due to need another.
const EARLIER: Duration = Duration::from_millis(1);

/// The requests of one loop to one store elsewhere. The loop calls it when a descriptor is ready, at the end
/// of a turn in which something was asked, and when a time has come. It belongs to the loop alone, so that
/// its connection ends when the loop is closed.
#[pyclass(frozen, weakref, module = "mirab._mirab")]
pub struct Driven {
    /// One of those on the store, for its news.
    limiter: Limiter,
    // Never locked while Python's code runs, which might come back here.
    inner: Mutex<Inner>,
}

struct Inner {
    driver: Driver,
    /// By the number under which each was asked; none until its future is there.
    asked: Slab<Option<Asked>>,
    is_flush_due: bool,
    watched: Watched,
}

/// Who waits for an answer.
struct Asked {
    future: Py<PyAny>,
    limiter: Py<PyLimiter>,
    key: Py<PyAny>,
    wanted: Wanted,
}

/// What the loop was told to watch.
#[derive(Default)]
struct Watched {
    wake: Option<RawFd>,
    /// The connection, by its descriptor and its number.
    link: Option<(RawFd, u64)>,
    writes: bool,
    timer: Option<Timer>,
    /// How many timers there were.
    timers: u64,
}

/// When the loop calls next of itself, and under which number: it may be earlier than it was told.
#[derive(Clone, Copy)]
struct Timer {
    due: Instant,
    number: u64,
}

type Answers = Vec<(Asked, mirab::Result<BareDecision>)>;

impl Driven {
    /// Begins in this loop, which watches it from now on.
    pub fn begin<'py>(event_loop: &Bound<'py, PyAny>, limiter: &Limiter) -> PyResult<Bound<'py, Self>> {
        let driver = Driver::new(limiter).map_err(raise)?;
        let local = || raise(Error::new(ErrorKind::Internal, "a store in this process needs no driver"));
        let inner = Inner {
            driver: driver.ok_or_else(local)?,
            asked: Slab::new(),
            is_flush_due: false,
            watched: Watched::default(),
        };
        let driven = Self { limiter: limiter.clone(), inner: Mutex::new(inner) };
        let driven = Bound::new(event_loop.py(), driven)?;
        Self::turn(&driven, event_loop, None)?;
        Ok(driven)
    }

    pub fn serves(&self, limiter: &Limiter) -> bool {
        self.lock().driver.serves(limiter)
    }

    /// Asks: the answer where it is known at once, else a future of the loop, the running one.
    pub fn ask<'py>(
        slf: &Bound<'py, Self>,
        event_loop: &Bound<'py, PyAny>,
        limiter: &Bound<'py, PyLimiter>,
        (key, cost): (&Bound<'py, PyAny>, u64),
        wanted: Wanted,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let bytes = key_bytes(key)?;
        let time = limiter.get().time(py)?;
        let (id, decided) = {
            let Inner { driver, asked, .. } = &mut *this.lock();
            let id = asked.insert(None);
            let decided = wanted.ask(driver, id as u64, limiter.get(), (bytes, cost), time);
            if !matches!(decided, Ok(None)) {
                asked.remove(id);
            }
            (id, decided)
        };
        if let Some(bare) = decided.transpose() {
            news::tell(py, &this.limiter);
            return wanted.answer(limiter, key, bare.map_err(raise)?);
        }
        let future = event_loop.call_method0(intern!(py, "create_future"))?;
        let asked = Asked {
            future: future.clone().unbind(),
            limiter: limiter.clone().unbind(),
            key: key.clone().unbind(),
            wanted,
        };
        let flushes = {
            let mut inner = this.lock();
            if let Some(place) = inner.asked.get_mut(id) {
                *place = Some(asked);
            }
            !std::mem::replace(&mut inner.is_flush_due, true)
        };
        if flushes {
            event_loop.call_method1(intern!(py, "call_soon"), (slf, true))?;
        }
        Ok(future)
    }

    /// Does what can be done without waiting, tells who was answered, and the loop what to watch. `timer` is
    /// the number of the one that has come.
    fn turn(slf: &Bound<'_, Self>, event_loop: &Bound<'_, PyAny>, timer: Option<u64>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let (watch, wake, mut watched, answers) = this.lock().turn();
        if timer.is_some() && timer == watched.timer.map(|timer| timer.number) {
            watched.timer = None;
        }
        for (asked, decided) in answers {
            if let Err(failure) = asked.tell(py, decided) {
                failure.write_unraisable(py, None);
            }
        }
        news::tell(py, &this.limiter);
        let done = watched.follow(&watch, wake, slf, event_loop);
        let mut inner = this.lock();
        inner.watched = watched;
        if let Err(failure) = done {
            // Nothing would call it again.
            let left = inner.give_up();
            drop(inner);
            left.into_iter().try_for_each(|asked| asked.fail(py, &failure))?;
            return Err(failure);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Driven {
    /// What the loop calls: `is_flush` at the end of a turn in which something was asked, `timer` when that
    /// one's time has come.
    #[pyo3(signature = (is_flush=false, timer=None))]
    fn __call__(slf: &Bound<'_, Self>, is_flush: bool, timer: Option<u64>) -> PyResult<()> {
        if is_flush && !slf.get().lock().is_flush_due {
            return Ok(()); // it went out with what came in meanwhile
        }
        Self::turn(slf, &running_loop(slf.py())?, timer)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(inner) = self.inner.try_lock() else { return Ok(()) };
        for (_, asked) in &inner.asked {
            if let Some(Asked { future, limiter, key, .. }) = asked {
                visit.call(future)?;
                visit.call(limiter)?;
                visit.call(key)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        let left = self.lock().give_up();
        drop(left);
    }
}

impl Inner {
    fn turn(&mut self) -> (Watch, RawFd, Watched, Answers) {
        self.is_flush_due = false;
        let watched = std::mem::take(&mut self.watched);
        let watch = self.driver.turn();
        let answered = self.driver.take_answered().into_iter();
        let answers = answered.filter_map(|(id, decided)| {
            let asked = self.asked.try_remove(usize::try_from(id).ok()?)??;
            Some((asked, decided))
        });
        let answers = answers.collect();
        (watch, self.driver.wake_fd(), watched, answers)
    }

    fn give_up(&mut self) -> Vec<Asked> {
        self.asked.drain().flatten().collect()
    }
}

impl Asked {
    /// Tells who asked, unless he does not wait any more.
    fn tell(self, py: Python<'_>, decided: mirab::Result<BareDecision>) -> PyResult<()> {
        let future = self.future.bind(py);
        if future.call_method0(intern!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        let bare = match decided {
            Ok(bare) => bare,
            Err(error) => return self.fail(py, &raise(error)),
        };
        let answer = self.wanted.answer(self.limiter.bind(py), self.key.bind(py), bare)?;
        future.call_method1(intern!(py, "set_result"), (answer,)).map(|_| ())
    }

    fn fail(&self, py: Python<'_>, failure: &PyErr) -> PyResult<()> {
        let future = self.future.bind(py);
        if future.call_method0(intern!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        future.call_method1(intern!(py, "set_exception"), (failure.value(py),)).map(|_| ())
    }
}

impl Watched {
    /// Has the loop watch what is to be watched now, and nothing else.
    fn follow(
        &mut self,
        watch: &Watch,
        wake: RawFd,
        driven: &Bound<'_, Driven>,
        event_loop: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = driven.py();
        // In a child made by fork it is another one, and the old one is closed.
        if self.wake != Some(wake) {
            add_reader(event_loop, wake, driven)?;
            self.wake = Some(wake);
        }
        let link = watch.link.map(|fd| (fd, watch.connection));
        if self.link != link {
            if let Some((fd, _)) = self.link.take() {
                event_loop.call_method1(intern!(py, "remove_reader"), (fd,))?;
                if std::mem::take(&mut self.writes) {
                    event_loop.call_method1(intern!(py, "remove_writer"), (fd,))?;
                }
            }
            if let Some((fd, _)) = link {
                add_reader(event_loop, fd, driven)?;
                self.link = link;
            }
        }
        if let Some((fd, _)) = link
            && self.writes != watch.writes
        {
            match watch.writes {
                true => event_loop.call_method1(intern!(py, "add_writer"), (fd, driven))?,
                false => event_loop.call_method1(intern!(py, "remove_writer"), (fd,))?,
            };
            self.writes = watch.writes;
        }
        if let Some(within) = watch.within {
            let due = Instant::now() + within;
            // The timer that is there serves later deadlines, too: when it comes, the next is set.
            if self.timer.is_none_or(|timer| due + EARLIER < timer.due) {
                self.timers += 1;
                let called = (within.as_secs_f64(), driven, false, self.timers);
                event_loop.call_method1(intern!(py, "call_later"), called)?;
                self.timer = Some(Timer { due, number: self.timers });
            }
        }
        Ok(())
    }
}

fn add_reader(event_loop: &Bound<'_, PyAny>, fd: RawFd, driven: &Bound<'_, Driven>) -> PyResult<()> {
    let py = driven.py();
    event_loop.call_method1(intern!(py, "add_reader"), (fd, driven)).map(|_| ()).map_err(|error| {
        if !error.is_instance_of::<PyNotImplementedError>(py) {
            return error;
        }
        raise(Error::new(
            ErrorKind::Unsupported,
            "an event loop that cannot watch descriptors (no add_reader), such as Windows's proactor loop: \
             use a selector loop",
        ))
    })
}
