//! What a key is: 1 to 65 536 bytes, any bytes.

use crate::{Error, Result};

/// The longest key, in bytes.
pub(crate) const MAX_KEY_BYTES: usize = 64 * 1024;

/// The largest cost: every integer up to it is exact in a double.
pub(crate) const MAX_COST: u64 = 1 << 53;

/// Checks the length of a key.
#[inline]
pub(crate) fn check(key: &[u8]) -> Result<()> {
    match key.len() {
        1..=MAX_KEY_BYTES => Ok(()),
        length => Err(wrong_length(length)),
    }
}

#[cold]
fn wrong_length(length: usize) -> Error {
    match length {
        0 => Error::argument("the key is empty: it must name who is limited, with 1 to 65536 bytes"),
        _ => Error::argument(format!("a key of {length} bytes: it must have 1 to {MAX_KEY_BYTES} bytes")),
    }
}

/// Checks a cost.
#[inline]
pub(crate) fn check_cost(cost: u64) -> Result<()> {
    if cost <= MAX_COST { Ok(()) } else { Err(wrong_cost(cost)) }
}

#[cold]
fn wrong_cost(cost: u64) -> Error {
    Error::argument(format!("cost {cost}: it must be an integer from 0 to {MAX_COST} (2^53)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_a_key_and_a_cost() {
        assert!(check(b"").is_err());
        assert!(check(b"\0").is_ok());
        assert!(check(&vec![b'x'; MAX_KEY_BYTES]).is_ok());
        assert!(check(&vec![b'x'; MAX_KEY_BYTES + 1]).is_err());
        assert!(check_cost(0).is_ok());
        assert!(check_cost(MAX_COST).is_ok());
        assert!(check_cost(MAX_COST + 1).unwrap_err().to_string().contains("9007199254740993"));
    }
}
