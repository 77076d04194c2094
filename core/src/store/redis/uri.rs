//! The URI of a Redis store and its parameters.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fmt, fs, io};

use percent_encoding::percent_decode_str;
use redis::{ConnectionAddr, IntoConnectionInfo};

#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::{Error, Result};

/// Everything a URI says; equal ones share a store.
pub(super) struct Settings {
    pub address: Address,
    pub user: Option<String>,
    password: Password,
    pub database: i64,
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
    pub prefix: String,
    /// Under what secret the identities in keys are hashed; none where they are written out.
    pub hash_keys: Option<String>,
    /// The deadline of a decision.
    pub timeout: Duration,
    /// The deadline of a process's very first connection.
    pub connect_timeout: Duration,
    /// How many round trips may be under way at once.
    pub pool: usize,
    shown: String,
}

pub(super) enum Address {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// Where the password is; it is read anew for each connection, so that it may be changed.
enum Password {
    None,
    Written(String),
    Environment(String),
    File(PathBuf),
}

const PARAMETERS: &str = "prefix, hash_keys, timeout_ms, connect_timeout_ms, pool, password_env, password_file, \
                          tls_ca, tls_cert, tls_key";

impl Settings {
    pub fn parse(uri: &str) -> Result<Self> {
        let (address, query) = uri.split_once('?').unwrap_or((uri, ""));
        let shown = without_password(address);
        let (address, user, password, database) = connection(address, &shown)?;
        let mut settings = Self {
            address,
            user,
            password: password.map_or(Password::None, Password::Written),
            database,
            #[cfg(feature = "tls")]
            tls: address_is_tls(uri).then(Tls::default),
            prefix: "mirab".to_owned(),
            hash_keys: None,
            timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_millis(500),
            pool: 4,
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
                "hash_keys" => settings.hash_keys = Some(secret(&value)?),
                "timeout_ms" => settings.timeout = millis(name, &value)?,
                "connect_timeout_ms" => settings.connect_timeout = millis(name, &value)?,
                "pool" => settings.pool = number(name, &value, 1, 1024)? as usize,
                "password_env" => settings.set_password(name, Password::Environment(value.into_owned()))?,
                "password_file" => {
                    settings.set_password(name, Password::File(value.into_owned().into()))?;
                }
                #[cfg(feature = "tls")]
                "tls_ca" | "tls_cert" | "tls_key" => settings.set_tls(name, value.into_owned().into())?,
                _ => {
                    return Err(Error::uri(format!(
                        "the parameter {name:?} in the store's URI: it must be one of {PARAMETERS}"
                    )));
                }
            }
        }
        #[cfg(feature = "tls")]
        if settings.tls.as_ref().is_some_and(|tls| tls.certificate.is_some() != tls.key.is_some()) {
            return Err(Error::uri(
                "the parameters tls_cert and tls_key in the store's URI: one needs the other",
            ));
        }
        Ok(settings)
    }

    #[cfg(feature = "tls")]
    fn set_tls(&mut self, name: &str, path: PathBuf) -> Result<()> {
        let Some(tls) = &mut self.tls else {
            return Err(Error::uri(format!(
                "the parameter {name} in the store's URI: it is for rediss:// only"
            )));
        };
        let place = match name {
            "tls_ca" => &mut tls.authority,
            "tls_cert" => &mut tls.certificate,
            _ => &mut tls.key,
        };
        *place = Some(path);
        Ok(())
    }

    /// The password, where there is one.
    pub fn password(&self) -> io::Result<Option<String>> {
        let missing = |what: String, why: String| io::Error::other(format!("the password {what}: {why}"));
        match &self.password {
            Password::None => Ok(None),
            Password::Written(password) => Ok(Some(password.clone())),
            Password::Environment(name) => match env::var(name) {
                Ok(password) => Ok(Some(password)),
                Err(error) => {
                    Err(missing(format!("in the environment variable {name:?}"), error.to_string()))
                }
            },
            Password::File(path) => match fs::read_to_string(path) {
                Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned())),
                Err(error) => Err(missing(format!("in the file {}", path.display()), error.to_string())),
            },
        }
    }

    fn set_password(&mut self, name: &str, password: Password) -> Result<()> {
        if !matches!(self.password, Password::None) {
            return Err(Error::uri(format!(
                "the parameter {name} in the store's URI: the password is given twice"
            )));
        }
        self.password = password;
        Ok(())
    }
}

/// The address without user, password and parameters.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

#[cfg(feature = "tls")]
fn address_is_tls(uri: &str) -> bool {
    uri.starts_with("rediss:") || uri.starts_with("valkeys:")
}

type Connection = (Address, Option<String>, Option<String>, i64);

fn connection(address: &str, shown: &str) -> Result<Connection> {
    // The parser of addresses knows neither the other name nor, in this build, the scheme of TLS.
    let (_, rest) = address.split_once(':').unwrap_or(("", address));
    let scheme = if address.contains("+unix:") { "redis+unix" } else { "redis" };
    let plain = format!("{scheme}:{rest}");
    let malformed = |why: &dyn fmt::Display| {
        Error::uri(format!(
            "the store {shown}: {why}; write redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or redis+unix:///PATH"
        ))
    };
    let connection = plain
        .as_str()
        .into_connection_info()
        .map_err(|error| malformed(&error.detail().map_or_else(|| error.to_string(), str::to_owned)))?;
    let told = connection.redis_settings();
    let address = match connection.addr() {
        ConnectionAddr::Tcp(host, port) => Address::Tcp { host: host.clone(), port: *port },
        ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
        _ => return Err(malformed(&"it is no address that this build can reach")),
    };
    Ok((address, told.username().map(str::to_owned), told.password().map(str::to_owned), told.db()))
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

fn secret(value: &str) -> Result<String> {
    if value.len() < 16 {
        return Err(Error::uri(
            "the parameter hash_keys in the store's URI: it must be a secret of 16 bytes or more",
        ));
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
