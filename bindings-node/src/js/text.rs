//! Texts and keys, as the bytes that the core takes.

use std::mem::MaybeUninit;
use std::{ptr, slice};

use napi_sys as sys;

use super::context::Context;

/// A text of fewer units, or as many bytes, is read without an allocation.
const INLINE: usize = 256;

/// Where bytes are read to.
pub(super) struct Space {
    short: [MaybeUninit<u8>; INLINE],
    long: Vec<u8>,
}

impl Space {
    #[inline]
    pub fn new() -> Self {
        Self { short: [const { MaybeUninit::uninit() }; INLINE], long: Vec::new() }
    }
}

impl Context<'_> {
    /// The bytes of a string or a `Uint8Array`; none when the value is neither.
    #[inline]
    pub(super) fn read_bytes<'s>(&self, value: sys::napi_value, space: &'s mut Space) -> Option<&'s [u8]> {
        let mut units = [const { MaybeUninit::uninit() }; INLINE];
        let length = self.copy_units(value, &mut units);
        if let Some(length) = length.filter(|&length| length < INLINE - 1) {
            // SAFETY: so many were written.
            let units = unsafe { slice::from_raw_parts(units.as_ptr().cast::<u16>(), length) };
            if narrow(units, &mut space.short) {
                // SAFETY: each of them was written.
                return Some(unsafe { slice::from_raw_parts(space.short.as_ptr().cast::<u8>(), length) });
            }
            space.long = utf8(units);
        } else {
            let is_text = length.is_some(); // and longer than this, it may be
            space.long = if is_text { self.long_text(value) } else { self.copy_bytes(value) }?;
        }
        Some(&space.long)
    }

    /// A text, with U+FFFD for lone surrogates; none when the value is no string.
    pub(super) fn read_text(&self, value: sys::napi_value) -> Option<String> {
        self.long_text(value).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The UTF-8 of a text of any length.
    #[cold]
    fn long_text(&self, value: sys::napi_value) -> Option<Vec<u8>> {
        let mut length = 0;
        // SAFETY: `env` is alive during the callback and so are its values; without a buffer Node only
        // tells the length.
        let status =
            unsafe { sys::napi_get_value_string_utf16(self.env, value, ptr::null_mut(), 0, &mut length) };
        if status != sys::Status::napi_ok {
            return None;
        }
        let mut units = vec![MaybeUninit::uninit(); length + 1]; // Node ends it with a NUL
        let length = self.copy_units(value, &mut units)?;
        // SAFETY: so many were written.
        let units = unsafe { slice::from_raw_parts(units.as_ptr().cast::<u16>(), length) };
        Some(utf8(units))
    }

    /// Copies as many units of a text as fit before a NUL, and says how many. Node has a text by units of
    /// 8 or 16 bits, and copies them several times faster than it writes UTF-8.
    #[inline]
    fn copy_units(&self, value: sys::napi_value, buffer: &mut [MaybeUninit<u16>]) -> Option<usize> {
        let mut length = 0;
        // SAFETY: see `read_text`; Node writes at most the buffer's length.
        let status = unsafe {
            let to = buffer.as_mut_ptr().cast();
            sys::napi_get_value_string_utf16(self.env, value, to, buffer.len(), &mut length)
        };
        (status == sys::Status::napi_ok).then_some(length)
    }

    /// The bytes of a `Uint8Array`.
    fn copy_bytes(&self, value: sys::napi_value) -> Option<Vec<u8>> {
        let (mut kind, mut length, mut data) = (0, 0, ptr::null_mut());
        // SAFETY: see `read_text`; the last two outputs are not asked for.
        let status = unsafe {
            sys::napi_get_typedarray_info(
                self.env,
                value,
                &mut kind,
                &mut length,
                &mut data,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        if status != sys::Status::napi_ok || kind != sys::TypedarrayType::uint8_array {
            return None;
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
        Some(bytes)
    }
}

/// Writes the units as bytes, each where it stands; true where all are ASCII.
#[inline]
fn narrow(units: &[u16], bytes: &mut [MaybeUninit<u8>; INLINE]) -> bool {
    let mut all = 0;
    for (byte, &unit) in bytes.iter_mut().zip(units) {
        byte.write(unit as u8);
        all |= unit;
    }
    all < 0x80
}

/// The units as UTF-8, with U+FFFD for lone surrogates.
fn utf8(units: &[u16]) -> Vec<u8> {
    if units.iter().fold(0, |all, unit| all | unit) < 0x80 {
        return units.iter().map(|&unit| unit as u8).collect();
    }
    let mut bytes = Vec::with_capacity(3 * units.len());
    for character in char::decode_utf16(units.iter().copied()) {
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    bytes
}
