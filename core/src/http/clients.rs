//! Who is asking: the client's address, behind proxies that are trusted and no others.

use super::address::Address;
use super::forwarded::{Form, from_the_right};
use super::network::Network;
use crate::{Error, Result};

/// How a server finds its clients.
///
/// Without a trusted proxy the client is who has connected, whatever the request says. A trusted proxy
/// tells for whom it asks, in one field that is read from the right: what stands to the left of the first
/// address that is not trusted was written by that client himself, and nobody believes it.
#[derive(Clone, Debug)]
pub struct Clients {
    trusted: Trusted,
    field: String,
    form: Form,
    ipv6_prefix: u8,
}

#[derive(Clone, Debug)]
enum Trusted {
    Nobody,
    /// So many proxies, one behind the other.
    Hops(u32),
    Networks {
        networks: Vec<Network>,
        /// Whoever connects through a socket of this machine, and has no address.
        unix: bool,
    },
}

/// The most proxies one behind the other.
const MOST_HOPS: u32 = 32;

impl Default for Clients {
    fn default() -> Self {
        Self {
            trusted: Trusted::Nobody,
            field: "x-forwarded-for".to_owned(),
            form: Form::List,
            ipv6_prefix: 64,
        }
    }
}

impl Clients {
    /// Nobody is trusted: the client is who has connected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts proxies by their addresses: `10.0.0.0/8`, `2001:db8::7`, or the names `loopback`,
    /// `linklocal`, `uniquelocal`, `shared` (100.64.0.0/10) and `unix`, for who connects through a socket
    /// file.
    ///
    /// # Errors
    /// `invalid_argument` for what is none of these, and for a network of everybody.
    pub fn trusting(mut self, proxies: &[impl AsRef<str>]) -> Result<Self> {
        let (mut networks, mut unix) = (Vec::new(), false);
        for proxy in proxies {
            match proxy.as_ref() {
                "unix" => unix = true,
                text => networks.extend(Network::parse(text)?),
            }
        }
        self.trusted =
            if proxies.is_empty() { Trusted::Nobody } else { Trusted::Networks { networks, unix } };
        Ok(self)
    }

    /// Trusts that there are so many proxies, one behind the other, and that nobody reaches the server but
    /// through them: else he says who he is. 0 trusts nobody.
    ///
    /// # Errors
    /// `invalid_argument` for more than 32.
    pub fn hops(mut self, hops: u32) -> Result<Self> {
        self.trusted = match hops {
            0 => Trusted::Nobody,
            1..=MOST_HOPS => Trusted::Hops(hops),
            _ => return Err(Error::argument(format!("{hops} proxies: it must be 0 to {MOST_HOPS}"))),
        };
        Ok(self)
    }

    /// The one field that the proxies write; `X-Forwarded-For` unless told otherwise. `Forwarded` is read
    /// as RFC 7239 says, any other as a list of addresses.
    ///
    /// # Errors
    /// `invalid_argument` for what is no name of a field.
    pub fn field(mut self, name: &str) -> Result<Self> {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_token) {
            return Err(Error::argument(format!(
                "the header {name:?}: it must be the name of one header, such as X-Forwarded-For or Forwarded"
            )));
        }
        self.field = name.to_ascii_lowercase();
        self.form = if self.field == "forwarded" { Form::Pairs } else { Form::List };
        Ok(self)
    }

    /// How many bits of an IPv6 address make a client; 64 unless told otherwise.
    ///
    /// # Errors
    /// `invalid_argument` outside 1 to 128.
    pub fn ipv6_prefix(mut self, bits: u8) -> Result<Self> {
        if !(1..=128).contains(&bits) {
            return Err(Error::argument(format!("an IPv6 prefix of {bits} bits: it must be 1 to 128")));
        }
        self.ipv6_prefix = bits;
        Ok(self)
    }

    /// The field that is to be given, in lower case; none where nobody is trusted and none is read.
    pub fn wants(&self) -> Option<&str> {
        (!matches!(self.trusted, Trusted::Nobody)).then_some(self.field.as_str())
    }

    /// The key of the client; none where nothing is known of him.
    ///
    /// `peer` is who has connected, empty or none for a socket without addresses; `lines` are the field's
    /// values, one for each time that the request has it, in their order.
    pub fn key<'a>(
        &self,
        peer: Option<&str>,
        lines: impl IntoIterator<Item = &'a str, IntoIter: DoubleEndedIterator>,
    ) -> Option<String> {
        self.address(peer, lines).map(|address| address.key(self.ipv6_prefix))
    }

    /// The address of the client, as [`key`](Self::key) finds it.
    pub fn address<'a>(
        &self,
        peer: Option<&str>,
        lines: impl IntoIterator<Item = &'a str, IntoIter: DoubleEndedIterator>,
    ) -> Option<Address> {
        let is_socket = peer.is_none_or(is_socket_file);
        let peer = peer.and_then(Address::parse);
        let trusts = match &self.trusted {
            Trusted::Nobody => false,
            Trusted::Hops(_) => true,
            Trusted::Networks { networks, unix } => {
                peer.map_or(*unix && is_socket, |peer| is_in(networks, peer))
            }
        };
        if !trusts {
            return peer;
        }
        let told = from_the_right(self.form, lines.into_iter()).map(|told| told.and_then(Address::parse));
        match &self.trusted {
            Trusted::Hops(hops) => behind_hops(peer, told, *hops),
            Trusted::Networks { networks, .. } => behind_networks(peer, told, networks),
            Trusted::Nobody => peer,
        }
    }
}

/// Whether a server so calls a peer that came through a socket file; what else is no address is nobody.
fn is_socket_file(peer: &str) -> bool {
    peer.is_empty() || peer.starts_with("unix:") || peer.starts_with(['/', '@'])
}

fn is_in(networks: &[Network], address: Address) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// The first who is not trusted; where one is not told, who asked for him.
fn behind_networks(
    mut last: Option<Address>,
    told: impl Iterator<Item = Option<Address>>,
    networks: &[Network],
) -> Option<Address> {
    for address in told {
        match address {
            None => break,
            Some(address) if is_in(networks, address) => last = Some(address),
            found => return found,
        }
    }
    last
}

/// Who stands before so many proxies; where there are fewer, the first; where he is not told, who asked for
/// him.
fn behind_hops(
    peer: Option<Address>,
    told: impl Iterator<Item = Option<Address>>,
    hops: u32,
) -> Option<Address> {
    told.take(hops as usize).fold(peer, |last, address| address.or(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_trusted_proxy_nobody_says_who_he_is() {
        let clients = Clients::new();
        assert_eq!(clients.wants(), None);
        assert_eq!(clients.key(Some("192.0.2.7"), ["1.1.1.1"]).as_deref(), Some("192.0.2.7"));
        assert_eq!(clients.key(Some("2001:db8::1"), []).as_deref(), Some("2001:db8::/64"));
        for peer in [None, Some(""), Some("unix:"), Some("@")] {
            assert_eq!(clients.key(peer, ["1.1.1.1"]), None);
        }
        let behind = clients.trusting(&["10.0.0.0/8"]).unwrap();
        assert_eq!(behind.key(Some("192.0.2.7"), ["1.1.1.1"]).as_deref(), Some("192.0.2.7"));
    }

    #[test]
    fn what_a_client_writes_stands_left_of_his_address() {
        let clients = Clients::new().trusting(&["10.0.0.0/8", "unix"]).unwrap();
        let key = |peer, lines: &[&'static str]| clients.key(peer, lines.iter().copied());
        assert_eq!(clients.wants(), Some("x-forwarded-for"));
        let his = Some("192.0.2.7".to_owned());
        assert_eq!(key(Some("10.0.0.1"), &["192.0.2.7"]), his);
        assert_eq!(key(Some("10.0.0.1"), &["1.1.1.1, 192.0.2.7, 10.9.9.9"]), his);
        assert_eq!(key(Some("10.0.0.1"), &["1.1.1.1", "192.0.2.7:99", "10.9.9.9"]), his);
        assert_eq!(key(None, &["junk, 192.0.2.7"]), his);
        for nobody in ["192.0.2.07", "192.0.2.7:99999", "host.example", "unknown", "[::1"] {
            assert_eq!(key(Some(nobody), &["6.6.6.6"]), None, "{nobody}");
        }
        // An inner client, whatever he adds; and a proxy that doesn't tell.
        assert_eq!(key(Some("10.0.0.1"), &["junk, 10.9.9.9"]).as_deref(), Some("10.9.9.9"));
        assert_eq!(key(Some("10.0.0.1"), &["192.0.2.7, unknown"]).as_deref(), Some("10.0.0.1"));
        assert_eq!(key(Some("10.0.0.1"), &[]).as_deref(), Some("10.0.0.1"));
        assert_eq!(key(None, &[]), None);
    }

    #[test]
    fn hops_are_counted_from_the_right() {
        let key = |hops, line: &'static str| {
            Clients::new().hops(hops).unwrap().key(Some("10.0.0.1"), [line]).unwrap()
        };
        assert_eq!(key(0, "192.0.2.7"), "10.0.0.1");
        assert_eq!(key(1, "1.1.1.1, 192.0.2.7"), "192.0.2.7");
        assert_eq!(key(2, "1.1.1.1, 192.0.2.7, 10.9.9.9"), "192.0.2.7");
        assert_eq!(key(3, "192.0.2.7"), "192.0.2.7");
        assert_eq!(key(1, "192.0.2.7, junk"), "10.0.0.1");
    }

    #[test]
    fn what_is_no_setting_is_an_error() {
        for (error, why) in [
            (Clients::new().trusting(&["everyone"]), "\"everyone\""),
            (Clients::new().hops(33), "33"),
            (Clients::new().field("X-A, X-B"), "one header"),
            (Clients::new().field(""), "one header"),
            (Clients::new().ipv6_prefix(0), "1 to 128"),
            (Clients::new().ipv6_prefix(129), "1 to 128"),
        ] {
            let error = error.unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
