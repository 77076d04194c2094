//! The fields in which proxies tell for whom they ask, read from the right: what a proxy has added stands
//! behind what it was told.

/// Which field it is, and so how it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `X-Forwarded-For` and others like it: addresses between commas.
    List,
    /// `Forwarded` of RFC 7239: `for=192.0.2.7;proto=https, for="[2001:db8::1]:80"`.
    Pairs,
}

/// The elements of the field's lines, from the last to the first: what each says of whom it was, none where
/// it does not say. One without a word does not say either: a proxy may write so whom it cannot name.
pub(super) fn from_the_right<'a>(
    form: Form,
    lines: impl DoubleEndedIterator<Item = &'a str>,
) -> impl Iterator<Item = Option<&'a str>> {
    lines.rev().flat_map(move |line| Elements { rest: Some(line), form }).map(move |element| {
        let element = element.trim_matches([' ', '\t']);
        match form {
            Form::List => Some(element).filter(|element| !element.is_empty()),
            Form::Pairs => of_for(element),
        }
    })
}

/// The elements of one line, from the right.
struct Elements<'a> {
    rest: Option<&'a str>,
    form: Form,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        let comma = match self.form {
            Form::List => rest.rfind(','),
            Form::Pairs => last_unquoted(rest, b','),
        };
        let (before, element) =
            comma.map_or((None, rest), |comma| (Some(&rest[..comma]), &rest[comma + 1..]));
        self.rest = before;
        Some(element)
    }
}

/// Where that byte stands last outside of quotes. Read from the right, too: an open quote that a client has
/// written must not swallow what proxies have added.
fn last_unquoted(text: &str, wanted: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let slashes = |at: usize| bytes[..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
    let is_quote = |at: usize| bytes[at] == b'"' && slashes(at) % 2 == 0;
    let mut at = bytes.len();
    while at > 0 {
        at -= 1;
        if bytes[at] == wanted {
            return Some(at);
        }
        if is_quote(at) {
            // One without a beginning is a character like others.
            if let Some(begin) = (0..at).rev().find(|&place| is_quote(place)) {
                at = begin;
            }
        }
    }
    None
}

/// The value of `for` in an element; none where it has none, or more than one, or is malformed.
fn of_for(element: &str) -> Option<&str> {
    let (mut found, mut rest) = (None, Some(element));
    while let Some(pairs) = rest {
        let (before, pair) = match last_unquoted(pairs, b';') {
            Some(at) => (Some(&pairs[..at]), &pairs[at + 1..]),
            None => (None, pairs),
        };
        rest = before;
        let pair = pair.trim_matches([' ', '\t']);
        if pair.is_empty() {
            continue;
        }
        let (name, value) = pair.split_once('=')?;
        if name.eq_ignore_ascii_case("for") && found.replace(unquoted(value)?).is_some() {
            return None;
        }
    }
    found
}

/// A token, or what stands between quotes; an address needs no escapes.
fn unquoted(value: &str) -> Option<&str> {
    let is_plain = |text: &str| !text.contains(['"', '\\']);
    match value.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').filter(|text| is_plain(text)),
        // A colon or a bracket belongs between quotes; those who leave them out are understood.
        None => Some(value).filter(|text| is_plain(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Form, lines: &[&str]) -> Vec<String> {
        from_the_right(form, lines.iter().copied()).map(|it| it.unwrap_or("?").to_owned()).collect()
    }

    #[test]
    fn lists_are_read_from_the_right() {
        assert_eq!(read(Form::List, &["a, b", "c,d"]), ["d", "c", "b", "a"]);
        assert_eq!(read(Form::List, &[" , a,, ", ""]), ["?", "?", "?", "a", "?"]);
        assert_eq!(read(Form::List, &[]), [""; 0]);
    }

    #[test]
    fn pairs_are_read_from_the_right() {
        let pairs = |line: &str| read(Form::Pairs, &[line]);
        assert_eq!(pairs("for=1.2.3.4;proto=https;by=_me, For=\"[::1]:80\""), ["[::1]:80", "1.2.3.4"]);
        assert_eq!(pairs("proto=https, for=_hidden, for=unknown"), ["unknown", "_hidden", "?"]);
        assert_eq!(pairs("for=a;for=b, for=\"x"), ["?", "?"]);
        assert_eq!(pairs("by=\"a,b;for=x\";for=1.2.3.4"), ["1.2.3.4"]);
        assert_eq!(pairs("for=\"a\\\"b\", for=c"), ["c", "?"]);
    }

    #[test]
    fn an_open_quote_swallows_nothing_that_was_added_behind_it() {
        assert_eq!(read(Form::Pairs, &["for=\"evil, for=1.2.3.4"])[0], "1.2.3.4");
        assert_eq!(read(Form::Pairs, &["for=\"evil, for=\"[2001:db8::1]\""])[0], "[2001:db8::1]");
        assert_eq!(read(Form::Pairs, &["\\, for=1.2.3.4"])[0], "1.2.3.4");
    }
}
