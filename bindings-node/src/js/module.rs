//! How Node loads the addon, and the one door through which every call comes in.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;

use mirab::{Error, ErrorKind, Result};
use napi_sys as sys;

use super::call::{Arguments, Call, MAX_ARGUMENTS};
use super::context::{Context, RESULTS, State, check, fault};
use super::value::{Value, slot_array};

/// A function and its name in JavaScript.
pub struct Export {
    pub name: &'static str,
    pub call: unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value,
}

/// Everything that the addon exports: `name in JavaScript => function`. Each has a callback of its own, of
/// which the function becomes a part: what it returns need not go through memory.
macro_rules! exports {
    ($($name:ident => $function:path,)*) => {
        const EXPORTS: &[$crate::js::Export] = &[$({
            unsafe extern "C" fn call(
                env: napi_sys::napi_env,
                info: napi_sys::napi_callback_info,
            ) -> napi_sys::napi_value {
                // SAFETY: Node calls it, as it calls every callback that `js` gave to it.
                unsafe { $crate::js::enter(env, info, $function) }
            }
            $crate::js::Export { name: stringify!($name), call }
        }),*];
    };
}
pub(crate) use exports;

/// Node calls this once in each environment that loads the addon.
#[unsafe(no_mangle)]
extern "C" fn napi_register_module_v1(env: sys::napi_env, exports: sys::napi_value) -> sys::napi_value {
    if let Err(error) = fill(env, exports) {
        Context { env, state: &State::default() }.throw(&error);
    }
    exports
}

/// The version of Node-API that is used: Node 14 and later have it.
#[unsafe(no_mangle)]
extern "C" fn node_api_module_get_api_version_v1() -> i32 {
    6
}

fn fill(env: sys::napi_env, exports: sys::napi_value) -> Result<()> {
    let state = State::default();
    let results = share_results(env, &state)?;
    let state = Rc::into_raw(Rc::new(state));
    // SAFETY: `env` is alive; the finalizer takes this one count back, when the environment ends.
    let status =
        unsafe { sys::napi_set_instance_data(env, state.cast_mut().cast(), Some(end), ptr::null_mut()) };
    check(status, "keeping the state")?;
    // SAFETY: nobody takes it back before.
    let context = Context { env, state: unsafe { &*state } };
    set(context, exports, "results", results)?;
    set(context, exports, "version", context.give(env!("CARGO_PKG_VERSION"))?)?;
    for export in crate::EXPORTS {
        let mut function = ptr::null_mut();
        // SAFETY: `env` is alive, and the state is as long as any function may be called.
        let status = unsafe {
            sys::napi_create_function(
                env,
                export.name.as_ptr().cast(),
                export.name.len() as isize,
                Some(export.call),
                state.cast_mut().cast(),
                &mut function,
            )
        };
        check(status, "making a function")?;
        set(context, exports, export.name, Value(function))?;
    }
    Ok(())
}

fn set(context: Context<'_>, object: sys::napi_value, name: &str, value: Value) -> Result<()> {
    let name = context.give(name)?;
    // SAFETY: all of them are alive in this callback.
    let status = unsafe { sys::napi_set_property(context.env, object, name.0, value.0) };
    check(status, "exporting")
}

/// Makes the `Float64Array` through which synchronous decisions reach JavaScript.
fn share_results(env: sys::napi_env, state: &State) -> Result<Value> {
    let (results, memory) = slot_array(env, RESULTS)?;
    let mut kept = ptr::null_mut();
    // SAFETY: `env` is alive and the out-pointer is ours; the strong reference keeps the memory until
    // the environment ends.
    let status = unsafe { sys::napi_create_reference(env, results.0, 1, &mut kept) };
    check(status, "keeping an array")?;
    state.results.set(memory);
    Ok(results)
}

unsafe extern "C" fn end(_: sys::napi_env, state: *mut c_void, _: *mut c_void) {
    // SAFETY: `fill` gave this pointer away with one count, and Node calls this once.
    drop(unsafe { Rc::from_raw(state.cast_const().cast::<State>()) });
}

/// The state of an environment, by a count of its own.
pub(super) fn state_of(env: sys::napi_env) -> Option<Rc<State>> {
    let state = state_pointer(env)?;
    // SAFETY: the pointer came from `Rc::into_raw` and is alive until `end`; only this thread
    // touches the count.
    unsafe {
        Rc::increment_strong_count(state);
        Some(Rc::from_raw(state))
    }
}

fn state_pointer(env: sys::napi_env) -> Option<*const State> {
    let mut state = ptr::null_mut();
    // SAFETY: `env` is alive during a callback.
    unsafe { sys::napi_get_instance_data(env, &mut state) };
    (!state.is_null()).then_some(state.cast_const().cast())
}

/// Every call from JavaScript: collects the arguments, runs the export, throws its error.
///
/// # Safety
/// Node calls it, for a function of [`fill`].
#[inline(always)]
pub unsafe fn enter(
    env: sys::napi_env,
    info: sys::napi_callback_info,
    run: impl FnOnce(&Call<'_>) -> Result<Value>,
) -> sys::napi_value {
    let mut state = ptr::null_mut();
    // Node writes the arguments to where they stay: what is copied right after it was written is waited for.
    let mut arguments = Arguments { values: [ptr::null_mut(); MAX_ARGUMENTS], count: MAX_ARGUMENTS };
    // SAFETY: Node fills at most `count` arguments and all the rest with `undefined`.
    let status = unsafe {
        let Arguments { values, count } = &mut arguments;
        sys::napi_get_cb_info(env, info, count, values.as_mut_ptr(), ptr::null_mut(), &mut state)
    };
    if status != sys::Status::napi_ok {
        return ptr::null_mut();
    }
    // SAFETY: `fill` gave the state to every function; it lives as long as the environment.
    let context = Context { env, state: unsafe { &*state.cast_const().cast::<State>() } };
    let call = Call { context, arguments: &arguments };
    catch_unwind(AssertUnwindSafe(|| match run(&call) {
        Ok(value) => value.0,
        Err(error) => thrown(context, &error),
    }))
    .unwrap_or_else(|panic| thrown(context, &fault(&*panic)))
}

#[cold]
fn thrown(context: Context<'_>, error: &Error) -> sys::napi_value {
    context.throw(error);
    ptr::null_mut()
}

impl Call<'_> {
    /// Registers the class of all errors: `new (kind: string, message: string)`.
    pub fn keep_error_class(&self, index: usize) -> Result<()> {
        let (class, mut kept, mut kind) = (self.argument(index), ptr::null_mut(), 0);
        // SAFETY: `env` and the argument are alive during the callback.
        unsafe {
            check(sys::napi_typeof(self.context.env, class, &mut kind), "reading a class")?;
            if kind != sys::ValueType::napi_function {
                return Err(Error::new(ErrorKind::InvalidArgument, "the error class must be a class"));
            }
            check(
                sys::napi_create_reference(self.context.env, class, 1, &mut kept),
                "keeping the error class",
            )?;
        }
        self.state().error_class.set(kept);
        Ok(())
    }
}
