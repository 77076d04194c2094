//! What can go wrong, in kinds whose names and numbers never change.

mod shown;

use std::fmt;

/// The kind of an [`Error`]: stable names for programs, the same in every language.
#[non_exhaustive]
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A limit or its notation is malformed, or its numbers lie outside the domain.
    InvalidLimit = 1,
    /// A key, a cost, a time or an option is outside its domain.
    InvalidArgument = 2,
    /// A store's URI is malformed or has an unknown parameter.
    InvalidUri = 3,
    /// A file or document of rules is malformed.
    InvalidRules = 4,
    /// The request is well-formed, but this store or this release cannot do it.
    Unsupported = 5,
    /// The limiter was closed.
    Closed = 6,
    /// The store could not be reached, or is not ready to decide.
    StoreUnavailable = 7,
    /// The store did not answer within the deadline; the charge may have happened.
    StoreTimeout = 8,
    /// The store refused the credentials or the command.
    StoreDenied = 9,
    /// The store has no room left.
    StoreFull = 10,
    /// The stored value is not one of this library's.
    StoreCorrupt = 11,
    /// The store was made with other parameters or another layout.
    StoreMismatch = 12,
    /// A fault of this library.
    Internal = 13,
}

impl ErrorKind {
    /// Every kind, in the order of the numbers.
    pub const ALL: &'static [Self] = &[
        Self::InvalidLimit,
        Self::InvalidArgument,
        Self::InvalidUri,
        Self::InvalidRules,
        Self::Unsupported,
        Self::Closed,
        Self::StoreUnavailable,
        Self::StoreTimeout,
        Self::StoreDenied,
        Self::StoreFull,
        Self::StoreCorrupt,
        Self::StoreMismatch,
        Self::Internal,
    ];

    /// The stable name, e.g. `store_timeout`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidLimit => "invalid_limit",
            Self::InvalidArgument => "invalid_argument",
            Self::InvalidUri => "invalid_uri",
            Self::InvalidRules => "invalid_rules",
            Self::Unsupported => "unsupported",
            Self::Closed => "closed",
            Self::StoreUnavailable => "store_unavailable",
            Self::StoreTimeout => "store_timeout",
            Self::StoreDenied => "store_denied",
            Self::StoreFull => "store_full",
            Self::StoreCorrupt => "store_corrupt",
            Self::StoreMismatch => "store_mismatch",
            Self::Internal => "internal",
        }
    }

    /// The stable number; append-only, never 0.
    pub const fn number(self) -> u32 {
        self as u32
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error: a kind for programs and a sentence for people. A refusal is never an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    /// Whether what was asked may have been done all the same.
    is_doubtful: bool,
    message: Box<str>,
}

/// What fallible functions of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind`; `message` names the value and what would be right.
    ///
    /// A message shows no password of a URI, no control characters, and at most some 1000 characters.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, is_doubtful: false, message: shown::shown(message.into()).into_boxed_str() }
    }

    /// The error of something that was sent and not answered.
    #[cfg(feature = "redis")]
    pub(crate) fn doubtful(mut self) -> Self {
        self.is_doubtful = true;
        self
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidLimit, message)
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn uri(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidUri, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// A fault of this library, told and not hidden.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Whether the store may have done what was asked, though nobody said so. It is never asked twice.
    pub const fn may_have_happened(&self) -> bool {
        self.is_doubtful
    }

    /// The kind, for programs.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_from_one_and_names_are_unique() {
        let mut names = std::collections::HashSet::new();
        for (index, kind) in ErrorKind::ALL.iter().enumerate() {
            assert_eq!(kind.number() as usize, index + 1);
            assert!(names.insert(kind.name()), "{kind} twice");
        }
    }

    #[test]
    fn an_error_shows_its_message_only() {
        let error = Error::argument("cost -1: it must be 0 or more");
        assert_eq!(error.to_string(), "cost -1: it must be 0 or more");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}
