//! What a limiter does when its store does not decide.

use std::str::FromStr;

use crate::{Error, Result};

/// What a limiter does when its store fails.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStoreFailure {
    /// The error itself is returned; nobody decides in the store's place.
    #[default]
    Raise,
}

impl FromStr for OnStoreFailure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "raise" => Ok(Self::Raise),
            "local" | "open" | "closed" => Err(Error::unsupported(format!(
                "on_store_failure \"{text}\" is not in this release: write \"raise\""
            ))),
            _ => Err(Error::argument(format!("on_store_failure \"{text}\": it must be \"raise\""))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn choices_are_told_apart_from_mistakes() {
        assert_eq!("raise".parse(), Ok(OnStoreFailure::Raise));
        let later = "local".parse::<OnStoreFailure>().unwrap_err();
        assert_eq!(later.kind(), ErrorKind::Unsupported);
        let wrong = "rise".parse::<OnStoreFailure>().unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::InvalidArgument);
    }
}
