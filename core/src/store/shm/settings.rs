//! What a URI of shared memory says.

use std::path::PathBuf;
use std::time::Duration;

use super::accounts;
use crate::{Error, ErrorKind, Result};

/// Which file, and how it is made where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// As the URI names it, without the parameters.
    pub shown: String,
    pub path: PathBuf,
    pub max_keys: usize,
    pub log_entries: usize,
    pub mode: u32,
    pub group: Option<u32>,
    pub refuses_when_full: bool,
    /// How long a process that is stopped while it decides is waited for.
    pub timeout: Duration,
}

const PARAMETERS: &str = "max_keys, log_entries, mode, group, when_full, timeout_ms";

impl Default for Settings {
    fn default() -> Self {
        Self {
            shown: String::new(),
            path: PathBuf::new(),
            max_keys: 100_000,
            log_entries: 1_024,
            mode: 0o600,
            group: None,
            refuses_when_full: false,
            timeout: Duration::from_secs(1),
        }
    }
}

impl Settings {
    pub const MOST_LOG_ENTRIES: usize = 1 << 17;
    pub const MOST_KEYS: usize = 1 << 28;

    /// Of `shm:NAME` or `shm:///PATH`; `rest` is what follows the colon.
    pub fn parse(rest: &str) -> Result<Self> {
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut settings = Self { shown: format!("shm:{place}"), ..Self::default() };
        settings.read(query)?;
        if let Some(path) = place.strip_prefix("//") {
            if !path.starts_with('/') || path.ends_with('/') || path.contains('\0') {
                return Err(Error::new(
                    ErrorKind::InvalidUri,
                    format!("the store \"shm:{place}\": it must be shm:NAME, or shm:///PATH of a file"),
                ));
            }
            settings.path = path.into();
            return Ok(settings);
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if place.is_empty() || place.len() > 64 || !place.bytes().all(is_name) {
            return Err(Error::new(
                ErrorKind::InvalidUri,
                format!(
                    "the store \"shm:{place}\": a name has 1 to 64 characters of A-Z a-z 0-9 . _ - \
                     (a file is named as shm:///PATH)"
                ),
            ));
        }
        // Users don't meet in one file by accident, nor layouts.
        let whose = match settings.group {
            Some(group) => format!("g{group}"),
            None => accounts::user().to_string(),
        };
        settings.path = folder()?.join(format!("mirab-{whose}-{}-{place}", super::layout::LAYOUT));
        Ok(settings)
    }

    fn read(&mut self, query: &str) -> Result<()> {
        let mut given = Vec::new();
        let mut mode = None;
        for parameter in query.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if given.contains(&name) {
                return Err(invalid(name, value, "given once"));
            }
            given.push(name);
            match name {
                "max_keys" => self.max_keys = number(name, value, 1, Self::MOST_KEYS)?,
                "log_entries" => self.log_entries = number(name, value, 1, Self::MOST_LOG_ENTRIES)?,
                "timeout_ms" => {
                    self.timeout = Duration::from_millis(number(name, value, 1, 3_600_000)? as u64);
                }
                "mode" => mode = Some(permissions(value)?),
                "group" => self.group = Some(group(value)?),
                "when_full" => {
                    self.refuses_when_full = match value {
                        "evict_least_indebted" => false,
                        "refuse" => true,
                        _ => return Err(invalid(name, value, "evict_least_indebted or refuse")),
                    };
                }
                _ => {
                    return Err(Error::new(
                        ErrorKind::InvalidUri,
                        format!(
                            "the parameter {name:?} of a shared-memory store: it must be one of {PARAMETERS}"
                        ),
                    ));
                }
            }
        }
        match (mode, self.group) {
            (Some(0o600), Some(_)) => return Err(invalid("mode", "600", "660 beside group, or left out")),
            // The group that this process has.
            (Some(0o660), None) => self.group = Some(accounts::group()),
            _ => {}
        }
        self.mode = if self.group.is_some() { 0o660 } else { 0o600 };
        Ok(())
    }
}

fn number(name: &str, value: &str, least: usize, most: usize) -> Result<usize> {
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| invalid(name, value, &format!("a whole number from {least} to {most}")))
}

/// In octal. Who uses it must write it, and a file that everybody could write would be nobody's limit.
fn permissions(value: &str) -> Result<u32> {
    let mode = u32::from_str_radix(value, 8).ok().filter(|mode| [0o600, 0o660].contains(mode));
    mode.ok_or_else(|| invalid("mode", value, "600 (the owner alone) or 660 (his group, too)"))
}

fn group(value: &str) -> Result<u32> {
    value
        .parse()
        .ok()
        .or_else(|| accounts::group_named(value))
        .ok_or_else(|| invalid("group", value, "the number of a group, or the name of one in /etc/group"))
}

fn invalid(name: &str, value: &str, right: &str) -> Error {
    Error::new(
        ErrorKind::InvalidUri,
        format!("the parameter {name}={value:?} of a shared-memory store: it must be {right}"),
    )
}

/// Where the platform keeps shared memory.
fn folder() -> Result<PathBuf> {
    if cfg!(target_os = "linux") {
        Ok("/dev/shm".into())
    } else if cfg!(target_os = "macos") {
        Ok("/tmp".into())
    } else {
        Err(Error::unsupported("a store of scheme \"shm\" needs Linux or macOS".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_file_holds_the_user_or_the_group_and_the_layout() {
        let named = Settings::parse("web?max_keys=7&mode=600").unwrap();
        let user = accounts::user();
        assert!(named.path.ends_with(format!("mirab-{user}-1-web")), "{named:?}");
        assert_eq!((named.max_keys, named.mode, named.group), (7, 0o600, None));
        assert_eq!(Settings::parse("web?mode=660").unwrap().group, Some(accounts::group()));
        let shared = Settings::parse("web?group=12&when_full=refuse").unwrap();
        assert!(shared.path.ends_with("mirab-g12-1-web"), "{shared:?}");
        assert_eq!((shared.mode, shared.refuses_when_full), (0o660, true));
        assert_eq!(Settings::parse("///var/x?timeout_ms=5").unwrap().path, PathBuf::from("/var/x"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (rest, part) in [
            ("", "1 to 64"),
            ("a/b", "\"shm:a/b\""),
            ("//host/x", "shm:///PATH"),
            ("///x/", "shm:///PATH"),
            ("web?max_keys=0", "\"0\""),
            ("web?max_keys=1&max_keys=2", "once"),
            ("web?mode=666", "\"666\""),
            ("web?mode=060", "\"060\""),
            ("web?mode=rw", "\"rw\""),
            ("web?mode=600&group=12", "660 beside group"),
            ("web?group=no-such-group", "no-such-group"),
            ("web?log_entries=1e9", "\"1e9\""),
            ("web?when_full=panic", "refuse"),
            ("web?prefix=x", "\"prefix\""),
        ] {
            let error = Settings::parse(rest).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidUri, "{rest}");
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
