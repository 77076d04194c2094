//! Rust values become JavaScript values.

use std::ptr;

use mirab::Result;
use napi_sys as sys;

use super::context::{Context, check};

/// A JavaScript value; alive until the callback that made it returns.
#[derive(Clone, Copy)]
pub struct Value(pub(super) sys::napi_value);

impl Value {
    /// What a callback returns that returns nothing. It cannot be stored, nor resolve a promise.
    pub const UNDEFINED: Self = Self(ptr::null_mut());
}

/// 64 bits each, which become a `Float64Array`.
pub struct Slots(pub Vec<u64>);

/// What can be handed to JavaScript.
pub trait IntoJs {
    fn into_js(self, context: &Context<'_>) -> Result<Value>;
}

/// Runs a Node-API constructor whose last argument receives the value.
fn make(what: &str, construct: impl FnOnce(*mut sys::napi_value) -> sys::napi_status) -> Result<Value> {
    let mut value = ptr::null_mut();
    check(construct(&raw mut value), what)?;
    Ok(Value(value))
}

impl IntoJs for Value {
    fn into_js(self, _: &Context<'_>) -> Result<Value> {
        Ok(self)
    }
}

impl IntoJs for () {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        // SAFETY: `env` is alive during a callback; so in every function of this file.
        make("making undefined", |out| unsafe { sys::napi_get_undefined(context.env, out) })
    }
}

impl IntoJs for bool {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        // SAFETY: see `()`.
        make("making a boolean", |out| unsafe { sys::napi_get_boolean(context.env, self, out) })
    }
}

impl IntoJs for f64 {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        // SAFETY: see `()`.
        make("making a number", |out| unsafe { sys::napi_create_double(context.env, self, out) })
    }
}

impl IntoJs for Slots {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        let (array, memory) = slot_array(context.env, self.0.len())?;
        if !self.0.is_empty() {
            // SAFETY: the array's memory has room for so many; JavaScript has not seen it yet.
            unsafe { ptr::copy_nonoverlapping(self.0.as_ptr(), memory, self.0.len()) };
        }
        Ok(array)
    }
}

/// A new `Float64Array`, and where its slots are.
pub(super) fn slot_array(env: sys::napi_env, length: usize) -> Result<(Value, *mut u64)> {
    let (mut buffer, mut memory) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: see `()`.
    let status =
        unsafe { sys::napi_create_arraybuffer(env, length * size_of::<u64>(), &mut memory, &mut buffer) };
    check(status, "making a buffer")?;
    // SAFETY: see `()`.
    let array = make("making an array", |out| unsafe {
        sys::napi_create_typedarray(env, sys::TypedarrayType::float64_array, length, buffer, 0, out)
    })?;
    Ok((array, memory.cast()))
}

impl IntoJs for &str {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        let (text, length) = (self.as_ptr().cast(), self.len() as isize);
        // SAFETY: see `()`; the text is copied.
        make("making a string", |out| unsafe { sys::napi_create_string_utf8(context.env, text, length, out) })
    }
}

impl IntoJs for String {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        self.as_str().into_js(context)
    }
}

impl<T: IntoJs> IntoJs for Option<T> {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        match self {
            Some(value) => value.into_js(context),
            None => ().into_js(context),
        }
    }
}

impl<T: IntoJs> IntoJs for Vec<T> {
    fn into_js(self, context: &Context<'_>) -> Result<Value> {
        // SAFETY: see `()`.
        let array = make("making an array", |out| unsafe {
            sys::napi_create_array_with_length(context.env, self.len(), out)
        })?;
        for (index, item) in self.into_iter().enumerate() {
            let item = item.into_js(context)?;
            // SAFETY: see `()`; both values are alive in this callback.
            let status = unsafe { sys::napi_set_element(context.env, array.0, index as u32, item.0) };
            check(status, "filling an array")?;
        }
        Ok(array)
    }
}
