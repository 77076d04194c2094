//! Pointers into Rust and back: who owns what, and the one NULL check of every kind of
//! argument.
//!
//! Each function is unsafe for one reason, stated at the top of the header: a pointer that
//! isn't NULL points to what its type says, for the length that comes with it.

use std::ffi::{CStr, c_char};

use crate::error::{Failure, mirab_result};

/// A type that C holds by a pointer from `_new` until `_free`: always a `Box`, so that
/// there is one way to make it and one way to end it.
pub(crate) trait Handle: Sized {}

/// Where a result goes, known not to be NULL before the work begins.
pub(crate) struct Output<T>(*mut T);

impl<T> Output<T> {
    /// Writes the result. The old bytes there are never read: they may be uninitialised.
    pub(crate) fn write(self, value: T) {
        // SAFETY: checked in `output`; the caller promises room for a `T`.
        unsafe { self.0.write(value) }
    }
}

impl<T: Handle> Output<*mut T> {
    /// Moves a new object into the caller's hands, until it comes back to `free`.
    pub(crate) fn give(self, value: T) {
        self.write(Box::into_raw(Box::new(value)));
    }
}

/// Where several results go, known to have room for them before the work begins.
pub(crate) struct Outputs<T>(*mut T, usize);

impl<T> Outputs<T> {
    /// Writes the results, from the first place on.
    pub(crate) fn write(self, values: impl Iterator<Item = T>) {
        for (index, value) in values.take(self.1).enumerate() {
            // SAFETY: checked in `outputs`; the caller promises room for so many.
            unsafe { self.0.add(index).write(value) };
        }
    }
}

/// Room for `room` results, of which `needed` will be written; NULL is fine when none will.
pub(crate) unsafe fn outputs<T>(
    pointer: *mut T,
    room: usize,
    needed: usize,
    what: &str,
) -> Result<Outputs<T>, Failure> {
    if pointer.is_null() && needed > 0 {
        return Err(null(what));
    }
    if room < needed {
        return Err(invalid(format!("{what} must have room for {needed}, not for {room}")));
    }
    Ok(Outputs(pointer, needed))
}

pub(crate) unsafe fn output<T>(pointer: *mut T, what: &str) -> Result<Output<T>, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    Ok(Output(pointer))
}

/// A place for a result that the caller may not want.
pub(crate) unsafe fn optional_output<T>(pointer: *mut T) -> Option<Output<T>> {
    (!pointer.is_null()).then_some(Output(pointer))
}

/// A handle that other threads may be using too.
pub(crate) unsafe fn shared<'a, T: Handle>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the promise of this module.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// A handle that may be left out.
pub(crate) unsafe fn optional<'a, T: Handle>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: the promise of this module.
    unsafe { pointer.as_ref() }
}

/// A handle that this thread alone is using.
pub(crate) unsafe fn exclusive<'a, T: Handle>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the promise of this module.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// Ends what `give` began. NULL is nothing to end.
pub(crate) unsafe fn free<T: Handle>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: it came from `give`, and the caller gives it up.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// Text that ends with a NUL byte.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: not NULL, and the promise of this module.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| {
        let shown = text.to_string_lossy();
        invalid(format!("{what} must be UTF-8, not \"{}\"", shown.escape_debug()))
    })
}

/// `count` texts; NULL is fine when there are none.
pub(crate) unsafe fn texts<'a>(
    pointer: *const *const c_char,
    count: usize,
    what: &str,
) -> Result<Vec<&'a str>, Failure> {
    // SAFETY: the promise of this module.
    let pointers = unsafe { slice(pointer, count, what)? };
    let one = format!("one of {what}");
    // SAFETY: as above, for each of them.
    pointers.iter().map(|&pointer| unsafe { text(pointer, &one) }).collect()
}

/// `len` elements from `pointer`; NULL is fine when there are none.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, len: usize, what: &str) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(what));
    }
    // More can't be an object in memory: the length is a negative number gone wrong.
    if len > isize::MAX as usize / size_of::<T>() {
        return Err(invalid(format!("the length of {what} can't be {len}")));
    }
    // SAFETY: not NULL, of a possible size, and the promise of this module.
    Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
}

/// A text as C reads it, in a room of so many bytes (1 or more): ended by NUL, and cut between characters
/// when it is too long.
pub(crate) fn terminated(text: &str, room: usize) -> impl Iterator<Item = c_char> {
    let text = &text[..text.floor_char_boundary(room - 1)];
    // A NUL inside would hide what follows it from every C reader.
    let bytes = text.bytes().map(|byte| if byte == 0 { b'?' } else { byte });
    bytes.chain([0]).map(|byte| byte as c_char)
}

/// A text in a room of fixed size, which is zero behind it.
pub(crate) fn fixed<const ROOM: usize>(text: &str) -> [c_char; ROOM] {
    let mut room = [0; ROOM];
    room.iter_mut().zip(terminated(text, ROOM)).for_each(|(place, byte)| *place = byte);
    room
}

/// A number that C gives as signed, so that a negative one is seen.
pub(crate) fn natural(number: i64, what: &str) -> Result<u64, Failure> {
    u64::try_from(number).map_err(|_| invalid(format!("{what} must be 0 or more, not {number}")))
}

#[cold]
pub(crate) fn invalid(message: String) -> Failure {
    Failure::new(mirab_result::MIRAB_INVALID_ARGUMENT, message)
}

#[cold]
pub(crate) fn null(what: &str) -> Failure {
    Failure::new(mirab_result::MIRAB_NULL_POINTER, format!("{what} is NULL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<const ROOM: usize>(text: &str) -> String {
        let bytes = fixed::<ROOM>(text).map(|byte| byte as u8);
        CStr::from_bytes_until_nul(&bytes).unwrap_or(c"no NUL").to_string_lossy().into_owned()
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(read::<5>("suv"), "suv");
        assert_eq!(read::<4>("suv"), "suv");
        assert_eq!(read::<3>("suv"), "su");
        assert_eq!(read::<1>("suv"), "");
        // Each of these letters has two bytes.
        assert_eq!([read::<7>("ماء"), read::<6>("ماء"), read::<5>("ماء")], ["ماء", "ما", "ما"]);
    }

    #[test]
    fn a_text_has_no_nul_inside() {
        assert_eq!(read::<9>("a\0b"), "a?b");
        assert_eq!(fixed::<4>("a"), [b'a' as c_char, 0, 0, 0]);
    }
}
