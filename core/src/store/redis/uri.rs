//! The URI of a Redis store and its parameters.

use std::fmt;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use redis::io::tcp::TcpSettings;
use redis::{ConnectionInfo, IntoConnectionInfo};

use crate::{Error, Result};

/// Everything a URI says; equal ones share a store.
pub(super) struct Settings {
    pub connection: ConnectionInfo,
    pub prefix: String,
    /// The deadline of a decision.
    pub timeout: Duration,
    /// The deadline of a process's very first connection.
    pub connect_timeout: Duration,
    /// How many idle connections are kept.
    pub pool: usize,
    shown: String,
}

const PARAMETERS: &str = "prefix, timeout_ms, connect_timeout_ms, pool";

impl Settings {
    pub fn parse(uri: &str) -> Result<Self> {
        let (address, query) = uri.split_once('?').unwrap_or((uri, ""));
        let shown = without_password(address);
        let mut settings = Self {
            connection: connection(address, &shown)?,
            prefix: "mirab".to_owned(),
            timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_millis(500),
            pool: 16,
            shown,
        };
        for (name, value) in
            query.split('&').filter(|it| !it.is_empty()).map(|it| it.split_once('=').unwrap_or((it, "")))
        {
            let value = percent_decode_str(value)
                .decode_utf8()
                .map_err(|_| Error::uri(format!("the parameter {name} in the store's URI is not UTF-8")))?;
            match name {
                "prefix" => settings.prefix = prefix(&value)?,
                "timeout_ms" => settings.timeout = millis(name, &value)?,
                "connect_timeout_ms" => settings.connect_timeout = millis(name, &value)?,
                "pool" => settings.pool = number(name, &value, 1, 1024)? as usize,
                _ => {
                    return Err(Error::uri(format!(
                        "the parameter {name:?} in the store's URI: it must be one of {PARAMETERS}"
                    )));
                }
            }
        }
        Ok(settings)
    }
}

/// The address without user, password and parameters.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

fn connection(address: &str, shown: &str) -> Result<ConnectionInfo> {
    let plain =
        address.strip_prefix("valkey").map_or_else(|| address.to_owned(), |rest| format!("redis{rest}"));
    let malformed = |why: &dyn fmt::Display| {
        Error::uri(format!(
            "the store {shown}: {why}; write redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or redis+unix:///PATH"
        ))
    };
    let connection = plain
        .as_str()
        .into_connection_info()
        .map_err(|error| malformed(&error.detail().map_or_else(|| error.to_string(), str::to_owned)))?;
    // Nothing is said on a new connection that isn't needed: each exchange would have its own wait.
    let settings = connection.redis_settings().clone().set_skip_set_lib_name();
    // A decision is one small packet: waiting for a second one would only delay it.
    let tcp = TcpSettings::default().set_nodelay(true);
    Ok(connection.set_redis_settings(settings).set_tcp_settings(tcp))
}

/// What may be shown of an address: all but what stands before the last `@`.
fn without_password(address: &str) -> String {
    match (address.find("://"), address.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => {
            format!("{}{}", &address[..scheme + 3], &address[at + 1..])
        }
        (_, Some(at)) => format!("…{}", &address[at + 1..]),
        _ => address.to_owned(),
    }
}

fn prefix(value: &str) -> Result<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:@/-".contains(&byte);
    if value.is_empty() || value.len() > 64 || !value.bytes().all(allowed) {
        return Err(Error::uri(format!(
            "the prefix {value:?} in the store's URI: it must be 1 to 64 characters of A-Z a-z 0-9 . _ : @ / -"
        )));
    }
    Ok(value.to_owned())
}

fn millis(name: &str, value: &str) -> Result<Duration> {
    number(name, value, 1, 3_600_000).map(Duration::from_millis)
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64> {
    value.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        Error::uri(format!(
            "the parameter {name}={value:?} in the store's URI: it must be a whole number from {least} to {most}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(uri: &str) -> String {
        match Settings::parse(uri) {
            Ok(_) => panic!("{uri} parses"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn parameters_have_defaults_and_bounds() {
        let plain = Settings::parse("redis://127.0.0.1").unwrap();
        assert_eq!((plain.prefix.as_str(), plain.timeout.as_millis()), ("mirab", 50));
        let given =
            Settings::parse("valkey://h:7000/2?timeout_ms=5000&prefix=a%3Ab&pool=3&connect_timeout_ms=9")
                .unwrap();
        assert_eq!((given.prefix.as_str(), given.timeout.as_millis(), given.pool), ("a:b", 5000, 3));
        assert_eq!(given.connect_timeout.as_millis(), 9);
        assert!(error("redis://h?timeout=5").contains("\"timeout\""));
        assert!(error("redis://h?timeout_ms=0").contains("from 1"));
        assert!(error("redis://h?timeout_ms=-1").contains("timeout_ms"));
        assert!(error("redis://h?prefix={x}").contains("prefix"));
        assert!(error("redis://h?prefix=").contains("prefix"));
        assert!(error("redis://h?pool=0").contains("pool"));
    }

    #[test]
    fn a_password_never_shows() {
        for uri in [
            "redis://user:sEcret@h/notanumber",
            "redis://user:sEcret@h:port/0",
            "redis://:sEc@ret@h/x",
            "redis://:sEcret@h?prefix={",
            "redis:user:sEcret@h",
        ] {
            let text = error(uri);
            assert!(!text.contains("sEc") && !text.contains("user"), "{text}");
        }
        let shown = Settings::parse("redis://user:sEcret@h:7000/1").unwrap().to_string();
        assert_eq!(shown, "redis://h:7000/1");
    }
}
