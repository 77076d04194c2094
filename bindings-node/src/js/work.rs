//! Work that may block: it runs on libuv's pool, and a promise tells its outcome. The process
//! stays alive until it is done.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;

use mirab::{Error, ErrorKind, Result};
use napi_sys as sys;

use super::call::Call;
use super::context::{Context, State, check, fault};
use super::module::state_of;
use super::value::{IntoJs, Value};

/// Shared by the JavaScript thread and one of the pool's, which use it in turns.
struct Work<F, T> {
    run: Option<F>,
    outcome: Option<Result<T>>,
    deferred: sys::napi_deferred,
    handle: sys::napi_async_work,
    /// Keeps the state until the work is done; only the JavaScript thread touches it.
    state: Rc<State>,
}

impl Call<'_> {
    /// A promise for what `run` returns.
    pub fn promise<T, F>(&self, run: F) -> Result<Value>
    where
        T: IntoJs + Send + 'static,
        F: FnOnce() -> Result<T> + Send + 'static,
    {
        let env = self.context.env;
        let state =
            state_of(env).ok_or_else(|| Error::new(ErrorKind::Closed, "this environment has ended"))?;
        let name = self.give("mirab")?;
        let (mut deferred, mut promise) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: `env` is alive during the callback; the box is taken back exactly once, by
        // `complete` or, when the work could not be queued, right here.
        unsafe {
            check(sys::napi_create_promise(env, &mut deferred, &mut promise), "making a promise")?;
            let work: *mut Work<F, T> = Box::into_raw(Box::new(Work {
                run: Some(run),
                outcome: None,
                deferred,
                handle: ptr::null_mut(),
                state,
            }));
            let queued = check(
                sys::napi_create_async_work(
                    env,
                    ptr::null_mut(),
                    name.0,
                    Some(execute::<F, T>),
                    Some(complete::<F, T>),
                    work.cast(),
                    &raw mut (*work).handle,
                ),
                "making asynchronous work",
            )
            .and_then(|()| check(sys::napi_queue_async_work(env, (*work).handle), "queueing work"));
            if let Err(error) = queued {
                let mut work = Box::from_raw(work);
                work.outcome = Some(Err(error));
                settle(env, *work);
            }
        }
        Ok(Value(promise))
    }
}

/// On a thread of the pool.
unsafe extern "C" fn execute<F, T>(_: sys::napi_env, work: *mut c_void)
where
    F: FnOnce() -> Result<T> + Send,
    T: Send,
{
    // SAFETY: between queueing and completion the work is this thread's alone.
    let work = unsafe { &mut *work.cast::<Work<F, T>>() };
    work.outcome = work
        .run
        .take()
        .map(|run| catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(fault(&*panic))));
}

/// On the JavaScript thread again.
unsafe extern "C" fn complete<F, T: IntoJs>(env: sys::napi_env, _: sys::napi_status, work: *mut c_void) {
    // SAFETY: `promise` gave this box away, and Node completes a work once.
    settle(env, *unsafe { Box::from_raw(work.cast::<Work<F, T>>()) });
}

/// Settles the promise. In an environment that is ending Node refuses, and nobody waits.
fn settle<F, T: IntoJs>(env: sys::napi_env, work: Work<F, T>) {
    let context = Context { env, state: &work.state };
    let outcome =
        work.outcome.unwrap_or_else(|| Err(Error::new(ErrorKind::Closed, "the work was cancelled")));
    context.settle(work.deferred, outcome.and_then(|value| context.give(value)));
    if !work.handle.is_null() {
        // SAFETY: `env` is alive; the handle is deleted once.
        unsafe { sys::napi_delete_async_work(env, work.handle) };
    }
}

impl Context<'_> {
    /// Settles a promise, whose deferred is then gone.
    pub(super) fn settle(&self, deferred: sys::napi_deferred, outcome: Result<Value>) {
        // SAFETY: `env` is alive, and so are the values that were made in this callback.
        unsafe {
            match outcome.map_err(|error| self.error(&error)) {
                Ok(value) => sys::napi_resolve_deferred(self.env, deferred, value.0),
                Err(Ok(error)) => sys::napi_reject_deferred(self.env, deferred, error.0),
                Err(Err(_)) => sys::Status::napi_generic_failure,
            };
        }
    }
}
