//! A client's address as a number, and as the key of a limit.

use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP address in 128 bits. IPv4 is told by its bits: `192.0.2.7` and `::ffff:c000:207` are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address(u128);

/// The first 96 bits of an IPv4 address (RFC 4291, 2.5.5.2).
const MAPPED: u128 = 0xffff << 32;

impl Address {
    /// Reads an address as a server, a proxy or an operator writes it: `192.0.2.7`, `192.0.2.7:80`,
    /// `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`, `fe80::1%eth0`, with blanks around. None where it
    /// is anything else: leading zeros, names, `unknown`, a port that is no port.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_matches([' ', '\t']);
        if let Some(rest) = text.strip_prefix('[') {
            let (inside, port) = rest.split_once(']')?;
            let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
            return if is_port { Self::v6(inside) } else { None };
        }
        match text.bytes().filter(|&byte| byte == b':').take(2).count() {
            0 => Self::v4(text),
            1 => text.split_once(':').filter(|(_, port)| is_port(port)).and_then(|(host, _)| Self::v4(host)),
            _ => Self::v6(text),
        }
    }

    fn v4(text: &str) -> Option<Self> {
        text.parse::<Ipv4Addr>().ok().map(|v4| Self(MAPPED | u128::from(v4.to_bits())))
    }

    fn v6(text: &str) -> Option<Self> {
        // A zone names an interface of the machine that says so, and nothing of whom it talks to.
        let bare = match text.split_once('%') {
            Some((_, "")) => return None,
            Some((bare, _)) => bare,
            None => text,
        };
        bare.parse::<Ipv6Addr>().ok().map(|v6| Self(v6.to_bits()))
    }

    /// The bits; those of IPv4 behind `::ffff:0:0/96`.
    pub const fn bits(self) -> u128 {
        self.0
    }

    pub(super) const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Whether it is one of IPv4.
    pub const fn is_ipv4(self) -> bool {
        self.0 >> 32 == MAPPED >> 32
    }

    /// The key of who has it: IPv4 as it is, IPv6 as the network of its first `ipv6_prefix` bits, since one
    /// subscriber has a whole network of addresses.
    pub fn key(self, ipv6_prefix: u8) -> String {
        if self.is_ipv4() {
            return self.to_string();
        }
        let prefix = u32::from(ipv6_prefix.min(128));
        let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
        // Room for the longest, so that it grows no more.
        let mut key = String::with_capacity("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128".len());
        let _ = write!(key, "{}/{prefix}", Ipv6Addr::from_bits(self.0 & mask));
        key
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ipv4() {
            Ipv4Addr::from_bits(self.0 as u32).fmt(f)
        } else {
            Ipv6Addr::from_bits(self.0).fmt(f)
        }
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self(MAPPED | u128::from(v4.to_bits())),
            IpAddr::V6(v6) => Self(v6.to_bits()),
        }
    }
}

/// Up to five digits, as some proxies append them; 0 is one that is not told.
fn is_port(text: &str) -> bool {
    let is_digits = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_many_spellings() {
        let is = |texts: &[&str], shown: &str| {
            for text in texts {
                let parsed = Address::parse(text).unwrap_or_else(|| panic!("{text}"));
                assert_eq!(parsed.to_string(), shown, "{text}");
            }
        };
        is(
            &[
                "192.0.2.7",
                " 192.0.2.7\t",
                "192.0.2.7:80",
                "192.0.2.7:0",
                "::ffff:192.0.2.7",
                "::FFFF:c000:207",
                "0:0:0:0:0:ffff:c000:0207",
                "[::ffff:192.0.2.7]:65535",
                "::ffff:192.0.2.7%eth0",
            ],
            "192.0.2.7",
        );
        is(&["2001:db8::1", "[2001:DB8:0::0:1]", "[2001:db8::1]:443", "2001:db8::1%3"], "2001:db8::1");
        is(&["::", "[::]", "[::]:1", "0:0:0:0:0:0:0:0"], "::");
    }

    #[test]
    fn what_is_no_address_is_none() {
        for text in [
            "",
            " ",
            "unknown",
            "_hidden",
            "localhost",
            "1.2.3",
            "1.2.3.4.5",
            "01.2.3.4",
            "256.1.1.1",
            "0x1.2.3.4",
            "1.2.3.4/32",
            "1.2.3.4:",
            "1.2.3.4:x",
            "1.2.3.4:65536",
            "1.2.3.4:000080",
            "1.2.3.4%eth0",
            "[1.2.3.4]",
            "[::1",
            "::1]",
            "[::1]80",
            "[::1]:",
            "[]",
            "::g",
            "1::2::3",
            "12345::",
            "fe80::1%",
            "1.2.3.4 5",
            "\u{661}.2.3.4",
            "::ffff:1.2.3.4:80",
            "/run/app.sock",
            "unix:",
        ] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_is_a_network_for_ipv6() {
        let key = |text, prefix| Address::parse(text).unwrap().key(prefix);
        assert_eq!(key("2001:db8:1:2ff:3:4:5:6", 56), "2001:db8:1:200::/56");
        assert_eq!(key("2001:db8:1:2ff:3:4:5:6", 64), "2001:db8:1:2ff::/64");
        assert_eq!(key("2001:db8::1", 128), "2001:db8::1/128");
        assert_eq!(key("2001:db8::1", 0), "::/0");
        assert_eq!(key("::1", 64), "::/64");
        assert_eq!(key("::ffff:192.0.2.7", 0), "192.0.2.7");
    }
}
