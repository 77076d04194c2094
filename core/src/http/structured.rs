//! What goes into structured fields (RFC 9651) and JSON: escaped.

use std::fmt::Write;

/// A structured field's string: printable ASCII, quotes and backslashes escaped.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' '..='~' => quoted.push(c),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}

/// A string of JSON (RFC 8259).
pub(super) fn json(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            '\0'..='\u{1f}' => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            _ => json.push(c),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_backslashes_and_controls_end_nothing() {
        assert_eq!(quoted("a\"b\\c\u{e9}\r\n"), "\"a\\\"b\\\\c???\"");
        assert_eq!(json("a\"b\\c\u{e9}\r\n"), "\"a\\\"b\\\\c\u{e9}\\u000d\\u000a\"");
        let back: String = serde_json::from_str(&json("\u{0}\u{1f}\"\\/\u{2028}")).unwrap();
        assert_eq!(back, "\u{0}\u{1f}\"\\/\u{2028}");
    }
}
