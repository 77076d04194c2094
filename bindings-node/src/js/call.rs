//! The arguments of one call. `lib/*.js` has checked what users pass; a wrong type here is a
//! fault of those files, told as an error all the same.

use std::ops::Deref;
use std::ptr;

use mirab::{Error, ErrorKind, Result};
use napi_sys as sys;

use super::context::{Context, check};

/// Keys and texts up to this many bytes are read without an allocation.
const INLINE: usize = 256;
/// The longest UTF-8 form of one character: a copy that ends nearer to the buffer's end may be cut.
const MARGIN: usize = 4;

pub(super) const MAX_ARGUMENTS: usize = 8;

/// One call from JavaScript.
pub struct Call<'a> {
    pub(super) context: Context<'a>,
    pub(super) arguments: [sys::napi_value; MAX_ARGUMENTS],
}

impl<'a> Deref for Call<'a> {
    type Target = Context<'a>;

    fn deref(&self) -> &Context<'a> {
        &self.context
    }
}

impl Call<'_> {
    /// The number at `index`, or none where something else stands.
    pub fn number_or_none(&self, index: usize) -> Option<f64> {
        self.read_number(self.arguments[index])
    }

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
    pub fn handle(&self, index: usize) -> Result<usize> {
        self.number(index).map(|number| number as usize)
    }

    /// The text at `index`, as UTF-8 with U+FFFD for lone surrogates.
    pub fn text(&self, index: usize) -> Result<String> {
        self.text_or_none(index)?.ok_or_else(|| wrong(index, "a string"))
    }

    /// The text at `index`, or none where something else stands.
    pub fn text_or_none(&self, index: usize) -> Result<Option<String>> {
        self.read_text(self.arguments[index])
    }

    /// The array of strings at `index`.
    pub fn texts(&self, index: usize) -> Result<Vec<String>> {
        let text = |value| self.read_text(value)?.ok_or_else(|| wrong(index, "an array of strings"));
        self.elements(index)?.into_iter().map(text).collect()
    }

    /// The array of numbers at `index`.
    pub fn numbers(&self, index: usize) -> Result<Vec<f64>> {
        let number = |value| self.read_number(value).ok_or_else(|| wrong(index, "an array of numbers"));
        self.elements(index)?.into_iter().map(number).collect()
    }

    /// The bytes of each string or `Uint8Array` in the array at `index`.
    pub fn keys(&self, index: usize) -> Result<Vec<Vec<u8>>> {
        let bytes = |value| self.read_bytes(value, index, |bytes| Ok(bytes.to_vec()));
        self.elements(index)?.into_iter().map(bytes).collect()
    }

    fn elements(&self, index: usize) -> Result<Vec<sys::napi_value>> {
        let array = self.arguments[index];
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

    /// Calls `read` with the bytes of the string or `Uint8Array` at `index`.
    pub fn with_bytes<R>(&self, index: usize, read: impl FnOnce(&[u8]) -> Result<R>) -> Result<R> {
        self.read_bytes(self.arguments[index], index, read)
    }

    fn read_bytes<R>(
        &self,
        value: sys::napi_value,
        index: usize,
        read: impl FnOnce(&[u8]) -> Result<R>,
    ) -> Result<R> {
        let mut inline = [0_u8; INLINE];
        match self.copy_text(value, &mut inline) {
            Some(length) if length < INLINE - MARGIN => read(&inline[..length]),
            Some(_) => read(&self.long_text(value)?),
            None => read(&self.copy_bytes(value, index)?),
        }
    }

    fn read_text(&self, value: sys::napi_value) -> Result<Option<String>> {
        let mut inline = [0_u8; INLINE];
        let bytes = match self.copy_text(value, &mut inline) {
            Some(length) if length < INLINE - MARGIN => inline[..length].to_vec(),
            Some(_) => self.long_text(value)?,
            None => return Ok(None),
        };
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Copies what fits; the length copied, or none when the value is no string.
    fn copy_text(&self, value: sys::napi_value, buffer: &mut [u8]) -> Option<usize> {
        let mut length = 0;
        // SAFETY: see `read_number`; Node writes at most the buffer's length.
        let status = unsafe {
            sys::napi_get_value_string_utf8(
                self.context.env,
                value,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                &mut length,
            )
        };
        (status == sys::Status::napi_ok).then_some(length)
    }

    fn long_text(&self, value: sys::napi_value) -> Result<Vec<u8>> {
        let mut length = 0;
        // SAFETY: see `read_number`; without a buffer Node only tells the length.
        let status = unsafe {
            sys::napi_get_value_string_utf8(self.context.env, value, ptr::null_mut(), 0, &mut length)
        };
        check(status, "measuring a string")?;
        let mut bytes = vec![0; length + 1]; // Node ends it with a NUL
        let copied = self.copy_text(value, &mut bytes).unwrap_or_default();
        bytes.truncate(copied);
        Ok(bytes)
    }

    fn copy_bytes(&self, value: sys::napi_value, index: usize) -> Result<Vec<u8>> {
        let (mut kind, mut length, mut data) = (0, 0, ptr::null_mut());
        // SAFETY: see `read_number`; the last two outputs are not asked for.
        let status = unsafe {
            sys::napi_get_typedarray_info(
                self.context.env,
                value,
                &mut kind,
                &mut length,
                &mut data,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        if status != sys::Status::napi_ok || kind != sys::TypedarrayType::uint8_array {
            return Err(wrong(index, "a string or a Uint8Array"));
        }
        let mut bytes = Vec::<u8>::with_capacity(length);
        if length > 0 && !data.is_null() {
            // SAFETY: `data` has `length` bytes, which no JavaScript frees during this call; the
            // copy keeps what another thread may write to a shared buffer away from the core.
            unsafe {
                ptr::copy_nonoverlapping(data.cast(), bytes.as_mut_ptr(), length);
                bytes.set_len(length);
            }
        }
        Ok(bytes)
    }
}

fn wrong(index: usize, expected: &str) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!("argument {index} of a native function must be {expected}"),
    )
}
