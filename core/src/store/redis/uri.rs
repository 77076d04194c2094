//! The URI of a Redis store: its address and its parameters.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fmt, io};

pub(super) use super::address::Address;
use super::address::{self, Location, MAX_DATABASE, database};
use super::file;
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::{Error, Result};

/// Everything a URI says; equal ones share a store.
pub(super) struct Settings {
    pub address: Address,
    pub user: Option<String>,
    password: Password,
    pub database: u32,
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

/// Where the password is; it is read anew for each connection, so that it may be changed.
enum Password {
    None,
    Written(String),
    Environment(String),
    File(PathBuf),
}

const PARAMETERS: &str = "prefix, hash_keys, timeout_ms, connect_timeout_ms, pool, db, password_env, password_file, \
                          tls_ca, tls_cert, tls_key";

impl Settings {
    pub fn parse(uri: &str) -> Result<Self> {
        let (address, query) = uri.split_once('?').unwrap_or((uri, ""));
        let Location { address, is_tls, user, password, database, shown } = Location::parse(address)?;
        #[cfg(not(feature = "tls"))]
        let _ = is_tls;
        let mut settings = Self {
            address,
            user,
            password: password.map_or(Password::None, Password::Written),
            database,
            #[cfg(feature = "tls")]
            tls: is_tls.then(Tls::default),
            prefix: "mirab".to_owned(),
            hash_keys: None,
            timeout: Duration::from_millis(50),
            connect_timeout: Duration::from_millis(500),
            pool: 4,
            shown,
        };
        let mut given = Vec::new();
        for parameter in query.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if !PARAMETERS.split(", ").any(|known| known == name) {
                return Err(unknown(name, given.last().copied(), query));
            }
            if given.contains(&name) {
                return Err(wrong(name, "it is given twice"));
            }
            given.push(name);
            let value = address::decoded(value).map_err(|why| wrong(name, why))?;
            settings.set(name, &value)?;
        }
        #[cfg(feature = "tls")]
        if let Some(Tls { certificate, key, .. }) = &settings.tls {
            match (certificate, key) {
                (Some(_), None) => return Err(wrong("tls_cert", "it needs its tls_key beside it")),
                (None, Some(_)) => return Err(wrong("tls_key", "it needs its tls_cert beside it")),
                _ => {}
            }
        }
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "prefix" => self.prefix = prefix(value)?,
            "hash_keys" => self.hash_keys = Some(secret(value)?),
            "timeout_ms" => self.timeout = millis(name, value)?,
            "connect_timeout_ms" => self.connect_timeout = millis(name, value)?,
            "pool" => self.pool = number(name, value, 1, 1024)? as usize,
            "db" => self.set_database(value)?,
            "password_env" => self.set_password(name, Password::Environment(named(name, value)?))?,
            "password_file" => self.set_password(name, Password::File(named(name, value)?.into()))?,
            _ => self.set_tls(name, named(name, value)?.into())?,
        }
        Ok(())
    }

    fn set_database(&mut self, value: &str) -> Result<()> {
        if !matches!(self.address, Address::Unix(_)) {
            return Err(wrong("db", "it is for redis+unix:// only; elsewhere write redis://HOST/DB"));
        }
        let why = format!("it must be a whole number from 0 to {MAX_DATABASE}");
        self.database = database(value).ok_or_else(|| wrong("db", &why))?;
        if self.database != 0 {
            self.shown.push_str(&format!("?db={}", self.database));
        }
        Ok(())
    }

    #[cfg(not(feature = "tls"))]
    fn set_tls(&mut self, name: &str, _: PathBuf) -> Result<()> {
        Err(Error::unsupported(format!(
            "the parameter {name} in the store's URI: this build lacks the feature \"tls\""
        )))
    }

    #[cfg(feature = "tls")]
    fn set_tls(&mut self, name: &str, path: PathBuf) -> Result<()> {
        let tls = self.tls.as_mut().ok_or_else(|| wrong(name, "it is for rediss:// only"))?;
        let place = match name {
            "tls_ca" => &mut tls.authority,
            "tls_cert" => &mut tls.certificate,
            _ => &mut tls.key,
        };
        *place = Some(path);
        Ok(())
    }

    fn set_password(&mut self, name: &str, password: Password) -> Result<()> {
        if !matches!(self.password, Password::None) {
            return Err(wrong(
                name,
                "there is a password already; give one, in the address, by password_env or by password_file",
            ));
        }
        self.password = password;
        Ok(())
    }

    /// The password, where there is one.
    pub fn password(&self) -> io::Result<Option<String>> {
        let missing = |place: String, why: &dyn fmt::Display| {
            io::Error::other(format!("the password cannot be read from {place}: {why}"))
        };
        match &self.password {
            Password::None => Ok(None),
            Password::Written(password) => Ok(Some(password.clone())),
            Password::Environment(name) => {
                let place = || format!("the environment variable {name} (password_env)");
                match env::var(name) {
                    Ok(password) => Ok(Some(password)),
                    Err(env::VarError::NotPresent) => Err(missing(place(), &"it is not set")),
                    // The error itself would show what it holds.
                    Err(env::VarError::NotUnicode(_)) => Err(missing(place(), &"it is not UTF-8")),
                }
            }
            Password::File(path) => {
                let place = || format!("the file {} (password_file)", path.display());
                let bytes = file::read(path).map_err(|error| missing(place(), &error))?;
                let text = String::from_utf8(bytes).map_err(|_| missing(place(), &"it is not UTF-8"))?;
                Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
            }
        }
    }
}

/// The address without user, password and parameters.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

fn wrong(name: &str, why: &str) -> Error {
    Error::uri(format!("the parameter {name} in the store's URI: {why}"))
}

/// Of a parameter that nobody knows its name, unless it may be a piece of a secret that was not encoded.
fn unknown(name: &str, after: Option<&str>, query: &str) -> Error {
    let is_name = name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_name && !query.contains('@') && after != Some("hash_keys") {
        return wrong(name, &format!("there is none of this name; it must be one of {PARAMETERS}"));
    }
    Error::uri(format!(
        "the store's URI has an unknown parameter: it must be one of {PARAMETERS}; in a password or secret, \
         write / ? # & % as %2F %3F %23 %26 %25"
    ))
}

fn prefix(value: &str) -> Result<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:@/-".contains(&byte);
    if value.is_empty() || value.len() > 64 || !value.bytes().all(allowed) {
        let given: String = value.chars().take(64).collect();
        return Err(wrong(
            &format!("prefix={given:?}"),
            "it must be 1 to 64 characters of A-Z a-z 0-9 . _ : @ / -",
        ));
    }
    Ok(value.to_owned())
}

fn secret(value: &str) -> Result<String> {
    if value.len() < 16 {
        return Err(wrong("hash_keys", "it must be a secret of 16 bytes or more"));
    }
    Ok(value.to_owned())
}

/// The name of a file or variable.
fn named(name: &str, value: &str) -> Result<String> {
    if value.is_empty() || value.contains('\0') {
        let what = if name == "password_env" { "an environment variable" } else { "a file" };
        return Err(wrong(name, &format!("it must name {what}")));
    }
    Ok(value.to_owned())
}

fn millis(name: &str, value: &str) -> Result<Duration> {
    number(name, value, 1, 3_600_000).map(Duration::from_millis)
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64> {
    value.parse().ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        wrong(&format!("{name}={value:?}"), &format!("it must be a whole number from {least} to {most}"))
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
        assert_eq!((plain.prefix.as_str(), plain.timeout.as_millis(), plain.pool), ("mirab", 50, 4));
        assert_eq!((plain.connect_timeout.as_millis(), plain.hash_keys), (500, None));
        let given =
            Settings::parse("valkey://h:7000/2?timeout_ms=5000&prefix=a%3Ab&pool=3&connect_timeout_ms=9")
                .unwrap();
        assert_eq!((given.prefix.as_str(), given.timeout.as_millis(), given.pool), ("a:b", 5000, 3));
        assert_eq!((given.connect_timeout.as_millis(), given.database), (9, 2));
        let socket = Settings::parse("redis+unix:///run/redis.sock?db=3&").unwrap();
        assert_eq!((socket.database, socket.to_string().as_str()), (3, "redis+unix:///run/redis.sock?db=3"));
        // A piece that is not encoded is none of its neighbours'.
        let odd = Settings::parse("redis://h?password_file=/a=b?c&prefix=p@q").unwrap();
        assert!(matches!(odd.password, Password::File(path) if path.as_os_str() == "/a=b?c"));
    }

    #[test]
    fn a_wrong_parameter_names_itself_and_what_would_be_right() {
        for (parameters, name, right) in [
            ("timeout=5", "timeout", "timeout_ms"),
            ("timeout_ms=0", "timeout_ms=\"0\"", "from 1 to 3600000"),
            ("timeout_ms=-1", "timeout_ms=\"-1\"", "a whole number"),
            ("timeout_ms=0.5", "timeout_ms=\"0.5\"", "a whole number"),
            ("timeout_ms", "timeout_ms=\"\"", "a whole number"),
            ("timeout_ms=5&timeout_ms=50", "timeout_ms", "given twice"),
            ("connect_timeout_ms=3600001", "connect_timeout_ms", "from 1 to 3600000"),
            ("pool=0", "pool=\"0\"", "from 1 to 1024"),
            ("pool=1025", "pool", "from 1 to 1024"),
            ("prefix={x}", "prefix=\"{x}\"", "A-Z"),
            ("prefix=", "prefix", "1 to 64 characters"),
            ("prefix=%ff", "prefix", "not UTF-8"),
            ("hash_keys=short", "hash_keys", "16 bytes or more"),
            ("db=1", "db", "redis://HOST/DB"),
            ("password_env=", "password_env", "name an environment variable"),
            ("password_file", "password_file", "name a file"),
            ("password_env=A&password_file=b", "password_file", "already"),
        ] {
            let text = error(&format!("redis://h?{parameters}"));
            assert!(text.contains(name) && text.contains(right), "{parameters}: {text}");
        }
        assert!(error("redis+unix:///s?db=-1").contains("db in the store's URI: it must be a whole number"));
        assert!(error("redis://:p@h?password_env=A").contains("password_env"));
    }

    #[test]
    #[cfg(feature = "tls")]
    fn parameters_of_tls_are_for_tls() {
        for name in ["tls_ca", "tls_cert", "tls_key"] {
            for address in ["redis://h", "valkey://h", "redis+unix:///s"] {
                let text = error(&format!("{address}?{name}=/f"));
                assert!(text.contains(name) && text.contains("rediss://"), "{text}");
            }
            assert!(error(&format!("rediss://h?{name}=")).contains("name a file"));
        }
        assert!(error("rediss://h?tls_cert=/f").contains("needs its tls_key"));
        assert!(error("valkeys://h?tls_key=/f").contains("needs its tls_cert"));
        let tls = Settings::parse("rediss://h?tls_ca=/a&tls_cert=/b&tls_key=/c").unwrap().tls.unwrap();
        assert_eq!((tls.authority, tls.key), (Some("/a".into()), Some("/c".into())));
    }

    #[test]
    fn a_secret_never_shows() {
        for uri in [
            "redis://user:sEcret@h/notanumber",
            "redis://user:sEcret@h:port/0",
            "redis://:sEc@ret@h/x",
            "redis://:sEcret@h?prefix={",
            "redis:user:sEcret@h",
            "redis://user:sEcret",
            "redis://user:sEc?ret@h",
            "redis://user:12?sEcret@h",
            "redis://user:12?sEcret",
            "redis://user:12/sEcret@h",
            "redis://:sEc#ret@h",
            "redis+unix://user:sEcret/path@x",
            "redis+unix://user:sEcret@h/path",
            "redis://h?hash_keys=sEcret",
            "redis://h?hash_keys=0123456789abcdef&ec_ret",
            "redis://h?password=sEcret",
            "redis://:sEcret@h?password_env=OTHER",
        ] {
            let text = error(uri);
            let shows = ["sEc", "ec_ret", "user:", "ret@", "12"].iter().find(|&&it| text.contains(it));
            assert_eq!(shows, None, "{uri}: {text}");
        }
        let shown = Settings::parse("redis://user:sEcret@h:7000/1?hash_keys=0123456789abcdef").unwrap();
        assert_eq!(shown.to_string(), "redis://h:7000/1");
    }
}
