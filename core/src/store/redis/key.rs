//! The text of a key on Redis, layout 1: `<prefix>1:{<key>}<id>`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::uri::Settings;
use crate::clock::Time;
use crate::receipt::Lease;
use crate::store::bucket::encode;

/// The longest key that is written out; a longer one is hashed.
const MAX_PLAIN: usize = 128;

/// The key of a bucket: `<prefix>1:{<key>}<id>`, or `<prefix>1t:{<key>}<id>` under a given clock,
/// whose times must never be read under a real one. The braces are the hash tag.
pub(super) fn text(settings: &Settings, key: &[u8], id: &str, time: Time) -> String {
    let Settings { prefix, hash_keys, .. } = settings;
    let space = if time.given().is_some() { "1t:{" } else { "1:{" };
    let mut text =
        String::with_capacity(prefix.len() + space.len() + key.len().min(MAX_PLAIN) + id.len() + 8);
    text.push_str(prefix);
    text.push_str(space);
    let start = text.len();
    if key.len() <= MAX_PLAIN && hash_keys.is_none() {
        encode(key, &mut text);
    }
    if key.len() > MAX_PLAIN || hash_keys.is_some() || text.len() - start > MAX_PLAIN {
        text.truncate(start);
        text.push('~');
        text.push_str(&hashed(hash_keys.as_deref().unwrap_or("mirab key"), key));
    }
    text.push('}');
    text.push_str(id);
    text
}

/// The name of a lease: its identity in 22 characters, and its units when they are more than one.
pub(super) fn lease(id: Lease, units: u64) -> String {
    let id = URL_SAFE_NO_PAD.encode((u128::from(id.high) << 64 | u128::from(id.low)).to_be_bytes());
    if units == 1 { id } else { format!("{id}:{units}") }
}

/// 128 bits of an HMAC-SHA-256, in 22 characters: every process and language must find the same text.
/// Without a secret its key only separates it from other uses of the hash.
fn hashed(secret: &str, key: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .map(|mac| mac.chain_update(key).finalize().into_bytes());
    mac.map_or_else(|_| String::new(), |digest| URL_SAFE_NO_PAD.encode(&digest[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(key: &[u8]) -> String {
        text(&Settings::parse("redis://h").unwrap(), key, "", Time::STORE)
    }

    #[test]
    fn texts_are_pinned() {
        assert_eq!(real(b"user:42"), "mirab1:{user:42}");
        assert_eq!(real(b"a{b}%\0 \xff"), "mirab1:{a%7Bb%7D%25%00%20%FF}");
        let x = Settings::parse("redis://h?prefix=x").unwrap();
        assert_eq!(text(&x, b"k", "t5/60", Time::given_us(0).unwrap()), "x1t:{k}t5/60");
        assert_eq!(real(&[b'a'; 128]), format!("mirab1:{{{}}}", "a".repeat(128)));
        assert_eq!(real(&[b'a'; 129]), "mirab1:{~y8MYURPFeRPIG7_akBAMew}");
    }

    #[test]
    fn a_lease_of_many_units_says_so() {
        let id = Lease { high: 0, low: 1 };
        assert_eq!(lease(id, 1), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(lease(id, 7), "AAAAAAAAAAAAAAAAAAAAAQ:7");
    }

    #[test]
    fn long_and_strange_keys_stay_apart() {
        let keys: [&[u8]; 6] = [b"a}", b"a", b"a%7D", b"~a", &[b' '; 43], &[b' '; 44]];
        let texts: std::collections::HashSet<String> = keys.iter().map(|key| real(key)).collect();
        assert_eq!(texts.len(), keys.len());
        assert!(real(&[b' '; 43]).starts_with("mirab1:{~"));
    }
}
