//! What one JavaScript environment (the main thread, a worker) owns.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::rc::Rc;

use mirab::http::{Answers, Clients};
use mirab::{Decision, Error, ErrorKind, Limiter, ManualClock, Result};
use napi_sys as sys;
use slab::Slab;

use super::event_loop::EventLoop;
use super::value::{IntoJs, Value};
use crate::wait::Waiting;

/// How many slots of 64 bits the array has through which decisions reach JavaScript, and receipts the
/// addon.
pub const RESULTS: usize = 128;

/// The objects of one environment, which JavaScript names by number. Only its thread touches it.
#[derive(Default)]
pub struct State {
    pub limiters: RefCell<Slab<Limiter>>,
    pub clocks: RefCell<Slab<ManualClock>>,
    pub clients: RefCell<Slab<Clients>>,
    pub answers: RefCell<Slab<Answers>>,
    /// Decisions that wait for [`crate::http::answer`].
    pub decisions: RefCell<Slab<Decision>>,
    pub waiters: RefCell<Slab<Waiting>>,
    /// Of each store elsewhere that was asked.
    pub(super) loops: RefCell<Vec<Rc<EventLoop>>>,
    pub(super) results: Cell<*mut u64>,
    pub(super) error_class: Cell<sys::napi_ref>,
}

/// An environment during one callback.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub(super) env: sys::napi_env,
    pub(super) state: &'a State,
}

impl<'a> Context<'a> {
    pub fn state(&self) -> &'a State {
        self.state
    }

    /// A value for JavaScript.
    pub fn give(&self, value: impl IntoJs) -> Result<Value> {
        value.into_js(self)
    }

    /// The array that JavaScript shares.
    pub fn results(&self) -> &'a [Cell<u64>; RESULTS] {
        // SAFETY: this is the memory of an array buffer of RESULTS slots, which a strong reference
        // keeps and nobody detaches; only this thread uses it.
        unsafe { &*self.state.results.get().cast::<[Cell<u64>; RESULTS]>() }
    }

    /// The JavaScript error for `error`: an instance of the registered class.
    pub(super) fn error(&self, error: &Error) -> Result<Value> {
        let arguments = [
            self.give(error.kind().name())?.0,
            self.give(&*error.to_string())?.0,
            self.give(error.may_have_happened())?.0,
        ];
        let mut class = ptr::null_mut();
        let mut instance = ptr::null_mut();
        // SAFETY: `env` is alive during a callback, and the out-pointers are ours.
        unsafe {
            check(
                sys::napi_get_reference_value(self.env, self.state.error_class.get(), &mut class),
                "reading the error class",
            )?;
            check(
                sys::napi_new_instance(self.env, class, arguments.len(), arguments.as_ptr(), &mut instance),
                "making an error",
            )?;
        }
        Ok(Value(instance))
    }

    /// Throws `error` in JavaScript, unless an exception is on its way already.
    pub(super) fn throw(&self, error: &Error) {
        let mut pending = false;
        // SAFETY: as in `error`; the texts are NUL-terminated.
        unsafe {
            sys::napi_is_exception_pending(self.env, &mut pending);
            if pending {
                return;
            }
            match self.error(error) {
                Ok(value) => sys::napi_throw(self.env, value.0),
                Err(_) => sys::napi_throw_error(
                    self.env,
                    c"MIRAB_INTERNAL".as_ptr(),
                    c"mirab could not make an error object".as_ptr(),
                ),
            };
        }
    }
}

/// A Node-API status as a result; `what` says what was tried.
#[inline]
pub(super) fn check(status: sys::napi_status, what: &str) -> Result<()> {
    if status == sys::Status::napi_ok { Ok(()) } else { Err(failed(status, what)) }
}

#[cold]
fn failed(status: sys::napi_status, what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("Node-API status {status} while {what}"))
}

/// What a caught panic becomes.
pub(super) fn fault(panic: &(dyn std::any::Any + Send)) -> Error {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::new(ErrorKind::Internal, format!("a fault in mirab: {}", text.unwrap_or("no description")))
}
