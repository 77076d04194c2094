//! What a client's or a server's error is to us.

use redis::{ErrorKind as Kind, RedisError, ServerErrorKind};

use crate::ErrorKind;

/// The kind of an error that is not about a value.
pub(super) fn kind(error: &RedisError) -> ErrorKind {
    if error.is_timeout() {
        return ErrorKind::StoreTimeout;
    }
    match error.kind() {
        Kind::AuthenticationFailed | Kind::Server(ServerErrorKind::NoPerm) => ErrorKind::StoreDenied,
        _ => match error.code() {
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => ErrorKind::StoreDenied,
            Some("OOM") => ErrorKind::StoreFull,
            _ if error.detail().is_some_and(denied_in_a_script) => ErrorKind::StoreDenied,
            _ => ErrorKind::StoreUnavailable,
        },
    }
}

/// What is told of an error, in one line.
pub(super) fn text(error: &RedisError) -> String {
    let text = error.to_string();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match error.kind() {
        Kind::Parse => format!("what answers there is not a Redis ({line})"),
        _ => line,
    }
}

/// Before they had a code, missing rights of a script were told in a sentence only.
fn denied_in_a_script(detail: &str) -> bool {
    ["The user executing the script can't", "ACL failure in script"].iter().any(|text| detail.contains(text))
}
