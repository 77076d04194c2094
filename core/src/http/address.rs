//! Who is asking: a client's address as a key.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The key of a client's address: IPv4 as it is, IPv6 masked to its first `ipv6_prefix` bits (one
/// subscriber has a whole network of them), IPv4 mapped into IPv6 as IPv4. A port, brackets and a
/// zone are dropped. None when the text is no address.
pub fn client_key(address: &str, ipv6_prefix: u8) -> Option<String> {
    match parse(address)?.to_canonical() {
        IpAddr::V4(v4) => Some(v4.to_string()),
        IpAddr::V6(v6) => {
            let prefix = u32::from(ipv6_prefix.min(128));
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            Some(format!("{}/{prefix}", Ipv6Addr::from_bits(v6.to_bits() & mask)))
        }
    }
}

fn parse(address: &str) -> Option<IpAddr> {
    let address = address.trim();
    if let Ok(socket) = address.parse::<SocketAddr>() {
        return Some(socket.ip());
    }
    let bare = address.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(address);
    bare.split('%').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_is_one_key() {
        for (address, key) in [
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7:4711", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("[::ffff:c000:207]:80", "192.0.2.7"),
            ("2001:db8:1:2ff:3:4:5:6", "2001:db8:1:200::/56"),
            ("[2001:db8:1:2ff::1]:443", "2001:db8:1:200::/56"),
            ("fe80::1%eth0", "fe80::/56"),
            ("::1", "::/56"),
        ] {
            assert_eq!(client_key(address, 56).as_deref(), Some(key), "{address}");
        }
        assert_eq!(client_key("2001:db8::1", 128).unwrap(), "2001:db8::1/128");
        assert_eq!(client_key("2001:db8::1", 0).unwrap(), "::/0");
    }

    #[test]
    fn what_is_no_address_is_none() {
        for text in ["", "unknown", "1.2.3", "1.2.3.4.5", "::g", "user:42"] {
            assert_eq!(client_key(text, 64), None, "{text}");
        }
    }
}
