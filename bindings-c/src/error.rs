//! Result codes, and the error that carries a message to the caller.

use std::ffi::{CStr, c_char};

use mirab::{Error, ErrorKind};

use crate::ffi::fixed;

/// How a call ended. `MIRAB_OK` is 0; everything else is a failure, and then nothing but
/// the `mirab_error` was written. A refused request isn't a failure: it is `MIRAB_OK` with
/// `allowed` false in the decision. A number never changes its meaning; later versions add
/// new ones, so keep a `default:` in a `switch`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum mirab_result {
    /// It worked.
    MIRAB_OK = 0,
    /// A limit's text or numbers can't be used.
    MIRAB_INVALID_LIMIT = 1,
    /// An argument other than a limit can't be used: a cost, a key, a time.
    MIRAB_INVALID_ARGUMENT = 2,
    /// The store's URI can't be used.
    MIRAB_INVALID_URI = 3,
    /// A file of rules can't be used.
    MIRAB_INVALID_RULES = 4,
    /// Understood, but this version or this store can't do it.
    MIRAB_UNSUPPORTED = 5,
    /// The limiter was closed.
    MIRAB_CLOSED = 6,
    /// The store can't be reached, or its file not be made.
    MIRAB_STORE_UNAVAILABLE = 7,
    /// The store didn't answer in time; the call may have been counted.
    MIRAB_STORE_TIMEOUT = 8,
    /// The store refused us: a wrong password, a missing permission, or another user's file.
    MIRAB_STORE_DENIED = 9,
    /// The store has no room.
    MIRAB_STORE_FULL = 10,
    /// The store holds something foreign under this key, or its file is foreign.
    MIRAB_STORE_CORRUPT = 11,
    /// The store isn't what the limiter expects: another layout or version.
    MIRAB_STORE_MISMATCH = 12,
    /// A failure inside mirab. Please report it.
    MIRAB_INTERNAL = 13,
    /// A pointer that must point to something is NULL.
    MIRAB_NULL_POINTER = 100,
    /// mirab panicked, and stopped the panic here. Please report it.
    MIRAB_PANIC = 101,
}

use mirab_result::*;

/// Room for a message in `mirab_error`, its NUL byte included.
pub const MIRAB_ERROR_MESSAGE_SIZE: usize = 508;

/// What went wrong, in memory of your own, and written only when something does.
/// Threads: one error belongs to one call at a time.
/// Lifetime: it is plain data; copy it, keep it, reuse it for the next call.
/// NULL: every function takes NULL instead and then keeps the message to itself.
/// Freeing: nothing to free.
#[repr(C)]
pub struct mirab_error {
    /// The same code that the function returned.
    pub code: mirab_result,
    /// What is wrong and what would be right: UTF-8, ended by NUL, cut when too long.
    pub message: [c_char; MIRAB_ERROR_MESSAGE_SIZE],
}

const _: () = assert!(size_of::<mirab_error>() == 512);

/// Nothing went wrong.
impl Default for mirab_error {
    fn default() -> Self {
        Self { code: MIRAB_OK, message: [0; MIRAB_ERROR_MESSAGE_SIZE] }
    }
}

impl From<&Failure> for mirab_error {
    fn from(failure: &Failure) -> Self {
        Self { code: failure.result, message: fixed(&failure.message) }
    }
}

impl mirab_error {
    /// What went wrong elsewhere.
    pub(crate) fn of(kind: ErrorKind, message: &str) -> Self {
        Self { code: result_of(kind), message: fixed(message) }
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let bytes = self.message.map(|byte| byte as u8);
        let text = CStr::from_bytes_until_nul(&bytes).unwrap_or(c"no NUL");
        text.to_string_lossy().into_owned()
    }
}

/// Why an exported function didn't do its work.
pub(crate) struct Failure {
    result: mirab_result,
    message: String,
}

impl Failure {
    pub(crate) fn new(result: mirab_result, message: impl Into<String>) -> Self {
        Self { result, message: message.into() }
    }

    /// The same message under another code.
    pub(crate) fn because(self, result: mirab_result) -> Self {
        Self { result, ..self }
    }

    /// The same code, with the place in an array before the message.
    pub(crate) fn of_item(self, index: usize) -> Self {
        Self { message: format!("item {index}: {}", self.message), ..self }
    }

    pub(crate) fn result(&self) -> mirab_result {
        self.result
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(result_of(error.kind()), error.to_string())
    }
}

fn result_of(kind: ErrorKind) -> mirab_result {
    match kind {
        ErrorKind::InvalidLimit => MIRAB_INVALID_LIMIT,
        ErrorKind::InvalidArgument => MIRAB_INVALID_ARGUMENT,
        ErrorKind::InvalidUri => MIRAB_INVALID_URI,
        ErrorKind::InvalidRules => MIRAB_INVALID_RULES,
        ErrorKind::Unsupported => MIRAB_UNSUPPORTED,
        ErrorKind::Closed => MIRAB_CLOSED,
        ErrorKind::StoreUnavailable => MIRAB_STORE_UNAVAILABLE,
        ErrorKind::StoreTimeout => MIRAB_STORE_TIMEOUT,
        ErrorKind::StoreDenied => MIRAB_STORE_DENIED,
        ErrorKind::StoreFull => MIRAB_STORE_FULL,
        ErrorKind::StoreCorrupt => MIRAB_STORE_CORRUPT,
        ErrorKind::StoreMismatch => MIRAB_STORE_MISMATCH,
        // The core may grow kinds; a test holds that each has its code here.
        _ => MIRAB_INTERNAL,
    }
}

/// The name of a result code, the same word in every language: "store_timeout" for
/// `MIRAB_STORE_TIMEOUT`, "ok" for `MIRAB_OK`, "unknown" for a number that isn't one.
/// Never NULL. The text lives as long as the process; don't free it.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C" fn mirab_result_name(result: u32) -> *const c_char {
    name_of(result).as_ptr()
}

fn name_of(result: u32) -> &'static CStr {
    match result {
        0 => c"ok",
        1 => c"invalid_limit",
        2 => c"invalid_argument",
        3 => c"invalid_uri",
        4 => c"invalid_rules",
        5 => c"unsupported",
        6 => c"closed",
        7 => c"store_unavailable",
        8 => c"store_timeout",
        9 => c"store_denied",
        10 => c"store_full",
        11 => c"store_corrupt",
        12 => c"store_mismatch",
        13 => c"internal",
        100 => c"null_pointer",
        101 => c"panic",
        _ => c"unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_the_core_has_its_number_and_its_name() {
        for &kind in ErrorKind::ALL {
            assert_eq!(result_of(kind) as u32, kind.number(), "{}", kind.name());
            assert_eq!(name_of(kind.number()).to_str(), Ok(kind.name()));
        }
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        let long = "ماء ".repeat(200);
        let error = mirab_error::from(&Failure::new(MIRAB_INTERNAL, long.as_str()));
        assert!(error.text().len() <= 507);
        assert!(error.text().len() >= 504);
        assert!(long.starts_with(&error.text()));
    }
}
