//! The arguments of one call. `lib/*.js` has checked what users pass; a wrong type here is a
//! fault of those files, told as an error all the same.

use std::ops::Deref;
use std::ptr;

use mirab::{Error, ErrorKind, Result};
use napi_sys as sys;

use super::context::{Context, check};
use super::text::Space;

pub(super) const MAX_ARGUMENTS: usize = 5;

/// What was passed.
pub(super) struct Arguments {
    pub values: [sys::napi_value; MAX_ARGUMENTS],
    pub count: usize,
}

/// One call from JavaScript.
pub struct Call<'a> {
    pub(super) context: Context<'a>,
    pub(super) arguments: &'a Arguments,
}

impl<'a> Deref for Call<'a> {
    type Target = Context<'a>;

    fn deref(&self) -> &Context<'a> {
        &self.context
    }
}

impl Call<'_> {
    /// Whether anything was passed at `index`.
    #[inline]
    pub fn has(&self, index: usize) -> bool {
        index < self.arguments.count
    }

    #[inline]
    pub(super) fn argument(&self, index: usize) -> sys::napi_value {
        self.arguments.values[index]
    }

    /// The number at `index`, or none where something else stands.
    #[inline]
    pub fn number_or_none(&self, index: usize) -> Option<f64> {
        self.read_number(self.argument(index))
    }

    #[inline]
    fn read_number(&self, value: sys::napi_value) -> Option<f64> {
        let mut number = 0.0;
        // SAFETY: `env` and the arguments are alive during the callback (Node fills the missing
        // ones with `undefined`), and the out-pointers are ours; so in every function below.
        let status = unsafe { sys::napi_get_value_double(self.context.env, value, &mut number) };
        (status == sys::Status::napi_ok).then_some(number)
    }

    /// The number at `index`.
    pub fn number(&self, index: usize) -> Result<f64> {
        self.number_or_none(index).ok_or_else(|| wrong(index, "a number"))
    }

    /// The whole number at `index`; JavaScript has checked that it is one, and not negative.
    pub fn integer(&self, index: usize) -> Result<u64> {
        self.number(index).map(|number| number as u64)
    }

    /// The object's number at `index`.
    #[inline]
    pub fn handle(&self, index: usize) -> Result<usize> {
        let mut handle = 0;
        // SAFETY: see `read_number`.
        let status =
            unsafe { sys::napi_get_value_uint32(self.context.env, self.argument(index), &mut handle) };
        if status == sys::Status::napi_ok { Ok(handle as usize) } else { Err(wrong(index, "a handle")) }
    }

    /// The text at `index`, as UTF-8 with U+FFFD for lone surrogates.
    pub fn text(&self, index: usize) -> Result<String> {
        self.text_or_none(index).ok_or_else(|| wrong(index, "a string"))
    }

    /// The text at `index`, or none where something else stands.
    pub fn text_or_none(&self, index: usize) -> Option<String> {
        self.context.read_text(self.argument(index))
    }

    /// The array of strings at `index`.
    pub fn texts(&self, index: usize) -> Result<Vec<String>> {
        let text = |value| self.context.read_text(value).ok_or_else(|| wrong(index, "an array of strings"));
        self.elements(index)?.into_iter().map(text).collect()
    }

    /// The array of numbers at `index`.
    pub fn numbers(&self, index: usize) -> Result<Vec<f64>> {
        let number = |value| self.read_number(value).ok_or_else(|| wrong(index, "an array of numbers"));
        self.elements(index)?.into_iter().map(number).collect()
    }

    /// The bytes of each string or `Uint8Array` in the array at `index`.
    pub fn keys(&self, index: usize) -> Result<Vec<Vec<u8>>> {
        let bytes = |value| {
            let mut space = Space::new();
            let bytes = self.context.read_bytes(value, &mut space).map(<[u8]>::to_vec);
            bytes.ok_or_else(|| wrong(index, "an array of strings or Uint8Arrays"))
        };
        self.elements(index)?.into_iter().map(bytes).collect()
    }

    fn elements(&self, index: usize) -> Result<Vec<sys::napi_value>> {
        let array = self.argument(index);
        let mut length = 0;
        // SAFETY: see `read_number`.
        let status = unsafe { sys::napi_get_array_length(self.context.env, array, &mut length) };
        check(status, "reading an array").map_err(|_| wrong(index, "an array"))?;
        let element = |item| {
            let mut value = ptr::null_mut();
            // SAFETY: see `read_number`.
            let status = unsafe { sys::napi_get_element(self.context.env, array, item, &mut value) };
            check(status, "reading an array").map(|()| value)
        };
        (0..length).map(element).collect()
    }

    /// Calls `read` with the bytes at `index`, or with none where something else stands.
    pub fn with_bytes_or_none<R>(
        &self,
        index: usize,
        read: impl FnOnce(Option<&[u8]>) -> Result<R>,
    ) -> Result<R> {
        let mut space = Space::new();
        read(self.context.read_bytes(self.argument(index), &mut space))
    }

    /// Calls `read` with the bytes of the string or `Uint8Array` at `index`.
    #[inline]
    pub fn with_bytes<R>(&self, index: usize, read: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        let mut space = Space::new();
        match self.context.read_bytes(self.argument(index), &mut space) {
            Some(bytes) => read(bytes),
            None => Err(wrong(index, "a string or a Uint8Array")),
        }
    }
}

#[cold]
fn wrong(index: usize, expected: &str) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!("argument {index} of a native function must be {expected}"),
    )
}
