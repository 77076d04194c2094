//! What a limiter does when its store does not decide.

use std::str::FromStr;

use crate::{Error, ErrorKind, Result};

/// What a limiter does when its store fails: the deadline has passed, the server is away, refuses, is full,
/// or holds a value that is not ours. A store in this process does not fail.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// The same limits are kept in this process until the store decides again, each bucket from where
    /// this process last saw it; see [`instances`](crate::LimiterBuilder::instances).
    #[default]
    Local,
    /// Every request is admitted.
    Open,
    /// Every request is refused, until the store is next looked for.
    Closed,
    /// The error itself is returned; nobody decides in the store's place.
    Raise,
}

impl OnStoreFailure {
    /// Whether an error is a failure of the store, and not of what was asked.
    pub(crate) fn is_failure(kind: ErrorKind) -> bool {
        matches!(
            kind,
            ErrorKind::StoreUnavailable
                | ErrorKind::StoreTimeout
                | ErrorKind::StoreDenied
                | ErrorKind::StoreFull
                | ErrorKind::StoreCorrupt
        )
    }
}

impl FromStr for OnStoreFailure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "local" => Ok(Self::Local),
            "open" => Ok(Self::Open),
            "closed" => Ok(Self::Closed),
            "raise" => Ok(Self::Raise),
            _ => Err(Error::argument(format!(
                "on_store_failure \"{text}\": it must be one of \"local\", \"open\", \"closed\", \"raise\""
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choices_are_four() {
        assert_eq!("raise".parse(), Ok(OnStoreFailure::Raise));
        assert_eq!("local".parse(), Ok(OnStoreFailure::default()));
        let wrong = "rise".parse::<OnStoreFailure>().unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::InvalidArgument);
        assert!(wrong.to_string().contains("\"closed\""), "{wrong}");
    }
}
