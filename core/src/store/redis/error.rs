//! What a server's error is to us.

use crate::ErrorKind;

/// The kind of an error that is not about a value.
pub(super) fn kind(error: &str) -> ErrorKind {
    match code(error) {
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" => ErrorKind::StoreDenied,
        "OOM" => ErrorKind::StoreFull,
        // Before users had names, a wrong password was told so.
        "ERR" if error.contains("invalid password") || error.contains("AUTH <password>") => {
            ErrorKind::StoreDenied
        }
        _ if DENIED_IN_A_SCRIPT.iter().any(|text| error.contains(text)) => ErrorKind::StoreDenied,
        _ if error.contains("-OOM ") || error.contains("used memory > 'maxmemory'") => ErrorKind::StoreFull,
        _ => ErrorKind::StoreUnavailable,
    }
}

/// The first word of an error.
pub(super) fn code(error: &str) -> &str {
    error.split([' ', '\r', '\n']).next().unwrap_or("")
}

/// Whether it says that this connection will not decide, while another one might: the server became a
/// replica, or wants to know anew who asks.
pub(super) fn is_elsewhere(error: &str) -> bool {
    matches!(code(error), "READONLY" | "MASTERDOWN" | "NOAUTH")
        || error.contains("-READONLY ")
        || error.contains("against a read only replica")
}

/// Before they had a code, missing rights of a script were told in a sentence only.
const DENIED_IN_A_SCRIPT: [&str; 2] = ["The user executing the script can't", "ACL failure in script"];

/// An error in one line, without what it repeats of what it was asked.
pub(super) fn line(error: &str) -> String {
    let error = error.split_once(", with args beginning with").map_or(error, |(error, _)| error);
    error.split_whitespace().collect::<Vec<_>>().join(" ")
}
