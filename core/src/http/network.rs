//! A network of addresses: `10.0.0.0/8`.

use super::address::Address;
use crate::{Error, Result};

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    base: u128,
    mask: u128,
}

/// Networks that have a name, as Express's `trust proxy` has them.
const NAMED: [(&str, &[&str]); 4] = [
    ("loopback", &["127.0.0.0/8", "::1"]),
    ("linklocal", &["169.254.0.0/16", "fe80::/10"]),
    ("uniquelocal", &["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]),
    // RFC 6598: what carriers and container networks use between.
    ("shared", &["100.64.0.0/10"]),
];

/// No network of proxies is larger than 10.0.0.0/8 or fc00::/7.
const EVERYBODY: &str = "it trusts everybody, or nearly, and then every client says who he is";

impl Network {
    /// The networks that a text names: one, or those behind a name.
    ///
    /// # Errors
    /// `invalid_argument` where it is none, where bits are set behind the prefix, and where it holds
    /// everybody.
    pub fn parse(text: &str) -> Result<Vec<Self>> {
        if let Some((_, networks)) = NAMED.iter().find(|(name, _)| *name == text) {
            return networks.iter().map(|network| Self::one(network)).collect();
        }
        Self::one(text).map(|network| vec![network])
    }

    fn one(text: &str) -> Result<Self> {
        let wrong = |why: &str| Error::argument(format!("the trusted proxy {text:?}: {why}"));
        let (address, prefix) = text.split_once('/').map_or((text, None), |(it, prefix)| (it, Some(prefix)));
        let has_port = address.starts_with('[') || address.contains('%') || address.trim() != address;
        let is_plain = !has_port && address.matches(':').count() != 1;
        let Some(address) = Address::parse(address).filter(|_| is_plain) else {
            return Err(wrong(
                "write an address, a network such as 10.0.0.0/8, or loopback, linklocal, uniquelocal, shared, unix",
            ));
        };
        let is_v4_text = !text.contains(':');
        let most = if is_v4_text { 32 } else { 128 };
        let bits = match prefix {
            None => most,
            Some(prefix) => prefix
                .parse::<u8>()
                .ok()
                .filter(|&bits| bits <= most && prefix.bytes().all(|byte| byte.is_ascii_digit()))
                .ok_or_else(|| {
                    wrong(&format!("the prefix behind the / is a whole number from 1 to {most}"))
                })?,
        };
        if bits == 0 {
            return Err(wrong(EVERYBODY));
        }
        let mask = u128::MAX << (if is_v4_text { 32 - bits } else { 128 - bits });
        let base = Address::from_bits(address.bits() & mask);
        if base != address {
            return Err(wrong(&format!("bits are set behind the prefix; write {base}/{bits}")));
        }
        let network = Self { base: base.bits(), mask };
        // Written as IPv6, too: all of IPv4 lies behind ::ffff:0:0/96.
        let mut holds_ipv4 = ["0.0.0.0", "255.255.255.255"].iter().filter_map(|it| Address::parse(it));
        let least = if address.is_ipv4() { 96 + 8 } else { 7 };
        if mask.leading_ones() < least || holds_ipv4.all(|it| network.contains(it)) {
            return Err(wrong(EVERYBODY));
        }
        Ok(network)
    }

    pub fn contains(self, address: Address) -> bool {
        address.bits() & self.mask == self.base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(network: &str, address: &str) -> bool {
        let address = Address::parse(address).unwrap();
        Network::parse(network).unwrap().iter().any(|network| network.contains(address))
    }

    #[test]
    fn a_network_holds_what_begins_alike() {
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3") && holds("::ffff:10.0.0.0/104", "10.1.2.3"));
        assert!(holds("192.0.2.7", "192.0.2.7") && !holds("192.0.2.7", "192.0.2.6"));
        assert!(holds("192.0.2.7/32", "192.0.2.7") && holds("192.0.2.6/31", "192.0.2.7"));
        assert!(holds("2001:db8::/32", "2001:db8:ff::1") && !holds("2001:db8::/32", "2001:db9::"));
        assert!(holds("::1", "::1") && !holds("::1", "::2"));
        assert!(
            holds("loopback", "127.9.9.9") && holds("loopback", "::1") && !holds("loopback", "128.0.0.1")
        );
        assert!(holds("uniquelocal", "172.31.0.1") && !holds("uniquelocal", "172.32.0.1"));
        assert!(holds("linklocal", "fe80::1") && holds("shared", "100.127.0.1"));
        assert!(!holds("2001:db8::/32", "10.0.0.1"));
    }

    #[test]
    fn what_is_no_network_is_an_error() {
        for (text, why) in [
            ("", "write an address"),
            ("10.0.0", "write an address"),
            ("10.0.0.1:80", "write an address"),
            ("[::1]", "write an address"),
            ("localhost", "write an address"),
            ("10.0.0.0/33", "from 1 to 32"),
            ("10.0.0.0/", "from 1 to 32"),
            ("10.0.0.0/+8", "from 1 to 32"),
            ("::/129", "from 1 to 128"),
            ("10.1.2.3/8", "write 10.0.0.0/8"),
            ("2001:db8::1/32", "write 2001:db8::/32"),
            ("0.0.0.0/0", "everybody"),
            ("::/0", "everybody"),
            ("0.0.0.0/1", "everybody"),
            ("128.0.0.0/1", "everybody"),
            ("::ffff:0:0/96", "everybody"),
            ("::ffff:0.0.0.0/97", "everybody"),
            ("::/64", "everybody"),
            ("::/8", "everybody"),
            ("8000::/1", "everybody"),
        ] {
            let error = Network::parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
