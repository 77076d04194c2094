//! The address in a store's URI: where the server is, as whom it is asked, and which database.
//!
//! Of an address that is malformed nothing is shown but the scheme, since what is a password in it cannot
//! be told.

use std::borrow::Cow;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::{Error, Result};

/// Redis's own port.
const PORT: u16 = 6379;

/// The largest number of a database.
pub(super) const MAX_DATABASE: u64 = i32::MAX as u64;

/// `SCHEME://[[USER]:PASSWORD@]HOST[:PORT][/DB]` or `SCHEME+unix://[[USER]:PASSWORD@]/PATH`, taken apart.
pub(super) struct Location {
    pub address: Address,
    pub is_tls: bool,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    /// The address without user and password.
    pub shown: String,
}

pub(super) enum Address {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// What of an address is wrong, and what would be right.
type Parsed<T> = std::result::Result<T, &'static str>;

impl Location {
    pub fn parse(address: &str) -> Result<Self> {
        let (scheme, rest) = address.split_once("://").unwrap_or((address, ""));
        let (is_unix, is_tls) = match scheme {
            "redis" | "valkey" => (false, false),
            "rediss" | "valkeys" => (false, true),
            "redis+unix" | "valkey+unix" => (true, false),
            _ => return Err(Error::uri(format!("the store's URI must begin with redis://; {FORMS}"))),
        };
        let malformed = |why| Error::uri(format!("the store {scheme}://…: {why}; {FORMS}"));
        if rest.contains('#') {
            return Err(malformed("a # can only be written as %23"));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (who, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = credentials(who).map_err(malformed)?;
        let shown = format!("{scheme}://{place}{path}");
        let (address, database) =
            if is_unix { unix(place, path) } else { tcp(place, path) }.map_err(malformed)?;
        Ok(Self { address, is_tls, user, password, database, shown })
    }
}

const FORMS: &str = "write redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or redis+unix://[[USER]:PASSWORD@]/PATH, \
                     and / ? # % in a name or password as %2F %3F %23 %25";

fn credentials(who: &str) -> Parsed<(Option<String>, Option<String>)> {
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    let decoded = |text, why| match decoded(text) {
        Ok(text) => Ok((!text.is_empty()).then_some(text)),
        Err(_) => Err(why),
    };
    Ok((
        decoded(user, "the user must be UTF-8, and a % in it is written %25")?,
        decoded(password, "the password must be UTF-8, and a % in it is written %25")?,
    ))
}

/// A part of a URI, its percent-encoded bytes decoded.
pub(super) fn decoded(text: &str) -> Parsed<String> {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let mut parts = text.as_bytes().split(|&byte| byte == b'%').skip(1);
    if parts.any(|part| !is_hex(part.first()) || !is_hex(part.get(1))) {
        return Err("a % that begins no %XX is written %25");
    }
    percent_decode_str(text).decode_utf8().map(Cow::into_owned).map_err(|_| "it is not UTF-8")
}

fn tcp(place: &str, path: &str) -> Parsed<(Address, u32)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or("the ] behind the IPv6 address is missing")?,
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    if host.is_empty() {
        return Err("the host is missing");
    }
    if place.starts_with('[') && host.split('%').next().is_none_or(|it| it.parse::<Ipv6Addr>().is_err()) {
        return Err("between [ ] stands an IPv6 address");
    }
    if host.contains(|byte: char| byte.is_whitespace() || byte.is_control()) {
        return Err("a host has no blanks");
    }
    let port = match port.strip_prefix(':') {
        Some(port) if port.contains(':') => return Err("an IPv6 address is written in [ ]"),
        Some(port) => number(port, u64::from(u16::MAX)).filter(|&port| port > 0),
        None if port.is_empty() => Some(PORT.into()),
        None => None,
    };
    let port = port.ok_or("the port must be a whole number from 1 to 65535")? as u16;
    let database = match path.trim_start_matches('/') {
        "" => 0,
        text => database(text).ok_or("the database behind the / must be a whole number from 0")?,
    };
    Ok((Address::Tcp { host: host.to_owned(), port }, database))
}

fn unix(place: &str, path: &str) -> Parsed<(Address, u32)> {
    if !place.is_empty() {
        return Err("a socket has a path and no host");
    }
    let path = decoded(path).map_err(|_| "the path must be UTF-8, and a % in it is written %25")?;
    if path.len() < 2 {
        return Err("the path of the socket is missing");
    }
    Ok((Address::Unix(path.into()), 0))
}

pub(super) fn database(text: &str) -> Option<u32> {
    number(text, MAX_DATABASE).map(|number| number as u32)
}

/// A number in digits only.
fn number(text: &str, most: u64) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&number| is_digits && number <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str) -> Location {
        Location::parse(address).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    fn error(address: &str) -> String {
        match Location::parse(address) {
            Ok(_) => panic!("{address} parses"),
            Err(error) => error.to_string(),
        }
    }

    fn tcp_of(address: &str) -> (String, u16, u32) {
        let it = parse(address);
        let Address::Tcp { host, port } = it.address else { panic!("{address} is a socket") };
        (host, port, it.database)
    }

    #[test]
    fn hosts_ports_and_databases() {
        assert_eq!(tcp_of("redis://h"), ("h".into(), 6379, 0));
        assert_eq!(tcp_of("valkey://10.0.0.1:7000/3"), ("10.0.0.1".into(), 7000, 3));
        assert_eq!(tcp_of("rediss://u:p@redis.example:1/"), ("redis.example".into(), 1, 0));
        assert_eq!(tcp_of("redis://[::1]:7000/1"), ("::1".into(), 7000, 1));
        assert_eq!(tcp_of("redis://[fe80::1]"), ("fe80::1".into(), 6379, 0));
        assert!(parse("valkeys://h").is_tls && !parse("valkey://h").is_tls);
    }

    #[test]
    fn sockets() {
        for (address, path) in [
            ("redis+unix:///run/redis.sock", "/run/redis.sock"),
            ("valkey+unix://u:p@/tmp/a@b%20c", "/tmp/a@b c"),
        ] {
            let Address::Unix(found) = parse(address).address else { panic!("{address} is no socket") };
            assert_eq!(found, PathBuf::from(path));
        }
        assert_eq!(parse("redis+unix://u:p@/tmp/a@b").shown, "redis+unix:///tmp/a@b");
    }

    #[test]
    fn users_and_passwords() {
        let who = |address: &str| {
            let it = parse(address);
            (it.user, it.password)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(who("redis://h"), (None, None));
        assert_eq!(who("redis://u@h"), (some("u"), None));
        assert_eq!(who("redis://:p@h"), (None, some("p")));
        assert_eq!(who("redis://u%40x:a%2Fb:c%3F@d@h"), (some("u@x"), some("a/b:c?@d")));
        assert_eq!(who("redis://:+unix:@h"), (None, some("+unix:")));
        assert_eq!(who("redis+unix://u:p@/s"), (some("u"), some("p")));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (address, why) in [
            ("redis:h", "must begin with redis://"),
            ("http://h", "must begin with redis://"),
            ("redis://", "the host is missing"),
            ("redis:///1", "the host is missing"),
            ("redis://:1", "the host is missing"),
            ("redis://h:", "the port"),
            ("redis://h:0", "the port"),
            ("redis://h:65536", "the port"),
            ("redis://h:+80", "the port"),
            ("redis://[::1", "the ]"),
            ("redis://[::1]7", "the port"),
            ("redis://::1", "the host is missing"),
            ("redis://fe80::1:7000", "in [ ]"),
            ("redis://a b", "blanks"),
            ("redis://h/x", "the database"),
            ("redis://h/-1", "the database"),
            ("redis://h/1/2", "the database"),
            ("redis://h/2147483648", "the database"),
            ("redis://:%ff@h", "the password must be UTF-8"),
            ("redis://:p%@h", "%25"),
            ("redis://u%zz:p@h", "%25"),
            ("redis+unix:///tmp/%", "%25"),
            ("redis://[::g]", "an IPv6 address"),
            ("redis://[127.0.0.1]", "an IPv6 address"),
            ("redis://%ff@h", "the user must be UTF-8"),
            ("rediss://h#insecure", "%23"),
            ("redis+unix://h/tmp/x", "no host"),
            ("redis+unix:///", "the path"),
            ("redis+unix://", "the path"),
        ] {
            let text = error(address);
            assert!(text.contains(why) && text.contains("write redis://"), "{address}: {text}");
        }
    }
}
