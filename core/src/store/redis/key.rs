//! The text of a key on Redis, layout 1: `<prefix>1:{<key>}<id>`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::clock::Time;
use crate::store::bucket::encode;

/// The longest key that is written out; a longer one is hashed.
const MAX_PLAIN: usize = 128;

/// What all limits of one key share: `<prefix>1:{<key>}`, or `<prefix>1t:{<key>}` under a given
/// clock, whose times must never be read under a real one. The braces are the hash tag.
pub(super) fn tagged(prefix: &str, key: &[u8], time: Time) -> String {
    let space = if time.given().is_some() { "1t:{" } else { "1:{" };
    let mut text = String::with_capacity(prefix.len() + space.len() + key.len().min(MAX_PLAIN) + 24);
    text.push_str(prefix);
    text.push_str(space);
    let start = text.len();
    if key.len() <= MAX_PLAIN {
        encode(key, &mut text);
    }
    if key.len() > MAX_PLAIN || text.len() - start > MAX_PLAIN {
        text.truncate(start);
        text.push('~');
        text.push_str(&hashed(key));
    }
    text.push('}');
    text
}

/// 128 bits of an HMAC-SHA-256, in 22 characters. Its key only separates it from other uses of the
/// hash: every process and language must find the same text.
fn hashed(key: &[u8]) -> String {
    let mac =
        Hmac::<Sha256>::new_from_slice(b"mirab key").map(|mac| mac.chain_update(key).finalize().into_bytes());
    mac.map_or_else(|_| String::new(), |digest| URL_SAFE_NO_PAD.encode(&digest[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(key: &[u8]) -> String {
        tagged("mirab", key, Time::STORE)
    }

    #[test]
    fn texts_are_pinned() {
        assert_eq!(real(b"user:42"), "mirab1:{user:42}");
        assert_eq!(real(b"a{b}%\0 \xff"), "mirab1:{a%7Bb%7D%25%00%20%FF}");
        assert_eq!(tagged("x", b"k", Time::given_us(0).unwrap()), "x1t:{k}");
        assert_eq!(real(&[b'a'; 128]), format!("mirab1:{{{}}}", "a".repeat(128)));
        assert_eq!(real(&[b'a'; 129]), "mirab1:{~y8MYURPFeRPIG7_akBAMew}");
    }

    #[test]
    fn long_and_strange_keys_stay_apart() {
        let keys: [&[u8]; 6] = [b"a}", b"a", b"a%7D", b"~a", &[b' '; 43], &[b' '; 44]];
        let texts: std::collections::HashSet<String> = keys.iter().map(|key| real(key)).collect();
        assert_eq!(texts.len(), keys.len());
        assert!(real(&[b' '; 43]).starts_with("mirab1:{~"));
    }
}
