//! Which mirab is loaded.

use std::ffi::{CStr, c_char};

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(text) => text,
    Err(_) => c"",
};

/// The version of the library that the program runs with, such as "0.1.0"; the
/// `MIRAB_VERSION_*` macros are of the header that it was compiled with.
/// Never NULL. The text lives as long as the process; don't free it.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn mirab_version() -> *const c_char {
    VERSION.as_ptr()
}
