//! Partition keys: which of a client's buckets is meant, told so that nobody reads a key out of it.

use std::fmt::{self, Write};
use std::hash::{BuildHasher, Hasher, RandomState};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::once::Once;
use crate::{Error, Result};

/// A secret that goes into the hash: an address alone has so few values that all can be tried.
#[derive(Clone, Default)]
pub(super) enum Salt {
    #[default]
    OfThisProcess,
    Given(Box<[u8]>),
}

const LEAST_BYTES: usize = 16;

impl Salt {
    pub fn given(salt: &[u8]) -> Result<Self> {
        if salt.len() < LEAST_BYTES {
            let length = salt.len();
            let why = format!("the partition salt has {length} bytes: it must have {LEAST_BYTES} or more");
            return Err(Error::argument(why));
        }
        Ok(Self::Given(salt.into()))
    }

    fn bytes(&self) -> &[u8] {
        static OWN: Once<[u8; 32]> = Once::new();
        match self {
            Self::Given(salt) => salt,
            Self::OfThisProcess => OWN.get_or_make(|| {
                let mut salt = [0; 32];
                for part in salt.chunks_mut(8) {
                    part.copy_from_slice(&RandomState::new().build_hasher().finish().to_ne_bytes());
                }
                salt
            }),
        }
    }
}

/// It is a secret.
impl fmt::Debug for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Given(_)) { "given" } else { "of this process" })
    }
}

/// The first 12 hexadecimal digits of a keyed SHA-256, as a byte sequence: the form that express-rate-limit
/// writes, with a key.
pub(super) fn partition(salt: &Salt, key: &[u8]) -> String {
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(salt.bytes()) else { return String::new() };
    let mut digits = String::with_capacity(12);
    for byte in &mac.chain_update(key).finalize().into_bytes()[..6] {
        let _ = write!(digits, "{byte:02x}");
    }
    STANDARD.encode(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_salt_makes_the_same_partition_everywhere() {
        let salt = Salt::given(b"0123456789abcdef").unwrap();
        // printf 127.0.0.1 | openssl dgst -sha256 -hmac 0123456789abcdef
        assert_eq!(partition(&salt, b"127.0.0.1"), PARTITION);
        assert_ne!(partition(&salt, b"127.0.0.2"), PARTITION);
        let own = partition(&Salt::default(), b"127.0.0.1");
        assert_eq!(own, partition(&Salt::default(), b"127.0.0.1"));
        assert_ne!(own, PARTITION);
        assert!(Salt::given(b"short").is_err_and(|error| error.to_string().contains("5 bytes")));
        assert!(!format!("{salt:?}").contains("0123"));
    }

    const PARTITION: &str = "NzRmNjJjYmI0NTAy";
}
