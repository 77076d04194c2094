//! What tells a decision about one key, under one limiter's limits, from others. It is against mistakes
//! only, and must cost next to nothing: every admitted request bears it.

use std::ffi::CStr;

/// Has seen the names of a limiter's limits; a key goes on from here.
#[derive(Clone, Copy)]
pub(crate) struct Origin(u64);

impl Origin {
    pub fn of<'a>(names: impl IntoIterator<Item = &'a CStr>) -> Self {
        names.into_iter().fold(Self(0), |origin, name| Self(origin.after(name.to_bytes())))
    }

    /// What a decision about this key bears.
    #[inline]
    pub fn with_key(self, key: &[u8]) -> u32 {
        self.after(key) as u32
    }

    #[inline]
    fn after(self, bytes: &[u8]) -> u64 {
        let (words, rest) = bytes.as_chunks();
        let begun = mix(self.0, bytes.len() as u64);
        let mixed = words.iter().fold(begun, |hash, &word| mix(hash, u64::from_ne_bytes(word)));
        mix(mixed, rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)))
    }
}

/// One to one in each of them, so that keys of which a single word differs differ here, too.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ product >> 32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn similar_keys_differ_whatever_their_length() {
        let origin = Origin::of([c"5/minute"]);
        let mut seen = HashSet::new();
        for length in 0..40 {
            let key = vec![0; length];
            assert!(seen.insert(origin.with_key(&key)), "{length} zeros");
            for place in 0..length {
                for bit in 0..8 {
                    let mut other = key.clone();
                    other[place] ^= 1 << bit;
                    assert!(seen.insert(origin.with_key(&other)), "{other:?}");
                }
            }
        }
        let users: HashSet<u32> =
            (0..10_000).map(|user| origin.with_key(format!("user:{user:011}").as_bytes())).collect();
        assert_eq!(users.len(), 10_000);
    }

    #[test]
    fn limits_differ_and_the_same_are_the_same() {
        let key = |names: &[&CStr]| Origin::of(names.iter().copied()).with_key(b"k");
        let policies =
            [&[c"5/minute"][..], &[c"6/minute"], &[c"5/minute", c"6/minute"], &[c"6/minute", c"5/minute"]];
        let origins: HashSet<u32> = policies.map(key).into();
        assert_eq!(origins.len(), policies.len());
        assert_eq!(key(&[c"5/minute"]), key(&[c"5/minute"]));
    }
}
