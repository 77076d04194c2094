//! How Node loads the addon, and the one door through which every call comes in.

use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;

use mirab::{Error, ErrorKind, Result};
use napi_sys as sys;

use super::call::{Call, MAX_ARGUMENTS};
use super::context::{Context, RESULTS, State, check, fault};
use super::value::Value;

/// A function and its name in JavaScript.
pub struct Export {
    name: &'static CStr,
    run: fn(&Call<'_>) -> Result<Value>,
}

impl Export {
    pub const fn new(name: &'static CStr, run: fn(&Call<'_>) -> Result<Value>) -> Self {
        Self { name, run }
    }
}

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
    let state = Rc::new(State::default());
    let results = share_results(env, &state)?;
    let context = Context { env, state: &state };
    set(env, exports, c"results", results)?;
    set(env, exports, c"version", context.give(env!("CARGO_PKG_VERSION"))?)?;
    for export in crate::EXPORTS {
        let mut function = ptr::null_mut();
        // SAFETY: the name and the export live for ever; `env` is alive.
        let status = unsafe {
            sys::napi_create_function(
                env,
                export.name.as_ptr(),
                export.name.count_bytes() as isize,
                Some(enter),
                ptr::from_ref(export).cast_mut().cast(),
                &mut function,
            )
        };
        check(status, "making a function")?;
        set(env, exports, export.name, Value(function))?;
    }
    // SAFETY: the finalizer takes back this one count, when the environment ends.
    let status = unsafe {
        sys::napi_set_instance_data(env, Rc::into_raw(state).cast_mut().cast(), Some(end), ptr::null_mut())
    };
    check(status, "keeping the state")
}

fn set(env: sys::napi_env, object: sys::napi_value, name: &CStr, value: Value) -> Result<()> {
    // SAFETY: all of them are alive in this callback.
    let status = unsafe { sys::napi_set_named_property(env, object, name.as_ptr(), value.0) };
    check(status, "exporting")
}

/// Makes the `Float64Array` through which synchronous decisions reach JavaScript.
fn share_results(env: sys::napi_env, state: &State) -> Result<Value> {
    let (mut buffer, mut data, mut array) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    let mut kept = ptr::null_mut();
    // SAFETY: `env` is alive and the out-pointers are ours; the strong reference keeps the memory
    // until the environment ends.
    unsafe {
        check(
            sys::napi_create_arraybuffer(env, RESULTS * size_of::<f64>(), &mut data, &mut buffer),
            "making a buffer",
        )?;
        check(
            sys::napi_create_typedarray(
                env,
                sys::TypedarrayType::float64_array,
                RESULTS,
                buffer,
                0,
                &mut array,
            ),
            "making an array",
        )?;
        check(sys::napi_create_reference(env, buffer, 1, &mut kept), "keeping a buffer")?;
    }
    state.results.set(data.cast());
    Ok(Value(array))
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
unsafe extern "C" fn enter(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let mut count = MAX_ARGUMENTS;
    let mut arguments = [ptr::null_mut(); MAX_ARGUMENTS];
    let mut data = ptr::null_mut();
    // SAFETY: Node fills at most `count` arguments and all the rest with `undefined`.
    let status = unsafe {
        sys::napi_get_cb_info(env, info, &mut count, arguments.as_mut_ptr(), ptr::null_mut(), &mut data)
    };
    let Some(state) = state_pointer(env).filter(|_| status == sys::Status::napi_ok) else {
        return ptr::null_mut();
    };
    // SAFETY: the state lives as long as the environment, and `data` is the export of `fill`.
    let (state, export) = unsafe { (&*state, &*data.cast_const().cast::<Export>()) };
    let call = Call { context: Context { env, state }, arguments };
    let outcome =
        catch_unwind(AssertUnwindSafe(|| (export.run)(&call))).unwrap_or_else(|panic| Err(fault(&*panic)));
    match outcome {
        Ok(value) => value.0,
        Err(error) => {
            call.context.throw(&error);
            ptr::null_mut()
        }
    }
}

impl Call<'_> {
    /// Registers the class of all errors: `new (kind: string, message: string)`.
    pub fn keep_error_class(&self, index: usize) -> Result<()> {
        let (class, mut kept, mut kind) = (self.arguments[index], ptr::null_mut(), 0);
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
