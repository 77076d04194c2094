//! What of a message is fit to be shown: no password, no control characters, not without end.

use std::fmt::Write;

/// How many characters of a message are shown.
const MOST: usize = 1_000;

/// How many of those are its end.
const END: usize = 300;

pub(super) fn shown(message: String) -> String {
    let message = without_passwords(message);
    let message = without_controls(message);
    cut(message)
}

/// Whatever looks like a URI loses what stands before its host: values that are quoted may hold one, also
/// where none belongs.
fn without_passwords(mut message: String) -> String {
    let mut from = 0;
    while let Some(at) = message[from..].find("://") {
        let start = from + at + 3;
        let end = message[start..].find(char::is_whitespace).map_or(message.len(), |end| start + end);
        from = start;
        // This is how our own messages write what a URI looks like.
        if message[start..end].starts_with("[[USER]") {
            continue;
        }
        if let Some(host) = message[start..end].rfind('@') {
            message.replace_range(start..start + host, "…");
            from += "…".len();
        }
    }
    message
}

fn without_controls(message: String) -> String {
    if !message.chars().any(char::is_control) {
        return message;
    }
    let mut clean = String::with_capacity(message.len() + 8);
    for c in message.chars() {
        if c.is_control() {
            let _ = write!(clean, "{}", c.escape_debug());
        } else {
            clean.push(c);
        }
    }
    clean
}

fn cut(message: String) -> String {
    let place = |number| message.char_indices().nth(number).map(|(place, _)| place);
    let count = message.chars().count();
    match (place(MOST - END), place(count.saturating_sub(END))) {
        (Some(begin), Some(end)) if count > MOST => format!("{}…{}", &message[..begin], &message[end..]),
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (message, clean) in [
            ("in \"redis://:S3cr3t@h\", at character 1", "in \"redis://…@h\", at character 1"),
            ("a://u:p@ss@h and b://v:q@i/2", "a://…@h and b://…@i/2"),
            ("redis://h:1 refused a@b", "redis://h:1 refused a@b"),
            ("memory://:S3cr3t@h", "memory://…@h"),
            ("://@", "://…@"),
            ("u@h", "u@h"),
        ] {
            assert_eq!(shown(message.to_owned()), clean);
        }
    }

    #[test]
    fn controls_are_spelled_out_and_texts_end() {
        assert_eq!(shown("it said \u{1b}[31m\0\n".to_owned()), "it said \\u{1b}[31m\\0\\n");
        for length in [0, 1, 997, 1_000, 1_001, 1_004, 1_000_000] {
            let text = "ä".repeat(length);
            let clean = shown(text.clone());
            assert!(clean.chars().count() <= MOST + 1, "{length}");
            assert_eq!(clean == text, length <= MOST, "{length}");
        }
    }
}
