//! A scanner over the notation that knows where it is, so that errors can point at the place.

use super::{invalid, nearest, units};
use crate::{Error, ErrorKind, Result};

pub(super) struct Scanner<'a> {
    text: &'a str,
    /// The byte where the next token begins, blanks skipped.
    at: usize,
    /// The byte where the last token began.
    last: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        let mut scanner = Self { text, at: 0, last: 0 };
        scanner.skip_blanks();
        scanner
    }

    #[cfg(not(feature = "calendar"))]
    pub fn text(&self) -> &'a str {
        self.text
    }

    pub fn mark(&self) -> usize {
        self.at
    }

    /// The next token: a run of digits, a run of other word characters, or one character.
    fn peek(&self) -> &'a str {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return "" };
        let run = |same: fn(char) -> bool| rest.find(|c: char| !same(c)).unwrap_or(rest.len());
        let length = match first {
            '0'..='9' => run(|c| c.is_ascii_digit()),
            c if is_word(c) => run(is_word),
            c => c.len_utf8(),
        };
        &rest[..length]
    }

    fn take(&mut self) -> &'a str {
        let token = self.peek();
        self.last = self.at;
        self.at += token.len();
        self.skip_blanks();
        token
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    pub fn accept_any(&mut self, tokens: &[&str]) -> bool {
        let found = tokens.contains(&self.peek());
        if found {
            self.take();
        }
        found
    }

    pub fn accept_word(&mut self, word: &str) -> bool {
        let found = self.peek().eq_ignore_ascii_case(word);
        if found {
            self.take();
        }
        found
    }

    pub fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.accept_word(word) {
            return Ok(());
        }
        Err(self.error_here(&format!("expected \"{word}\"")))
    }

    /// The name in front of `sign`, which is taken; nothing is taken when there is none.
    pub fn name_before(&mut self, sign: &str) -> Option<&'a str> {
        self.before(sign, |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    }

    /// The word in front of `sign`, which is taken; nothing is taken when there is none.
    pub fn word_before(&mut self, sign: &str) -> Option<&'a str> {
        self.before(sign, |c| is_word(c) || c == '-')
    }

    fn before(&mut self, sign: &str, allowed: fn(char) -> bool) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let word = &rest[..rest.find(|c| !allowed(c)).unwrap_or(rest.len())];
        let after = rest[word.len()..].trim_start_matches([' ', '\t']);
        if word.is_empty() || !after.starts_with(sign) {
            return None;
        }
        self.last = self.at;
        self.at += rest.len() - after.len() + sign.len();
        self.skip_blanks();
        Some(word)
    }

    pub fn number(&mut self, meaning: &str) -> Result<u64> {
        let token = self.peek();
        if !token.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.error_here(&format!("expected {meaning}")));
        }
        match token.parse() {
            Ok(number) => {
                self.take();
                Ok(number)
            }
            Err(_) => Err(self.error_here("the number is too large")),
        }
    }

    /// `[N] UNIT` in microseconds.
    pub fn period(&mut self) -> Result<u64> {
        let count = if self.peek().starts_with(|c: char| c.is_ascii_digit()) {
            self.number("a number of units")?
        } else {
            1
        };
        let word = self.peek();
        if word.eq_ignore_ascii_case("m") {
            return Err(self.error_here("\"m\" is ambiguous: min or month?"));
        }
        let Some(unit_us) = units::unit_us(word) else {
            return Err(match word {
                "" => self.error_here("expected a unit such as second, minute, hour or day"),
                _ => self.error_known("unknown unit", &units::WORDS, word),
            });
        };
        self.take();
        count.checked_mul(unit_us).ok_or_else(|| {
            self.error_at_last(&format!(
                "a period of {count} of these is too long: at most 2^50 microseconds (35 years)"
            ))
        })
    }

    /// The name of a time zone; an empty one at the end.
    #[cfg(feature = "calendar")]
    pub fn zone(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+' | '.');
        let name = &rest[..rest.find(|c| !allowed(c)).unwrap_or(rest.len())];
        self.last = self.at;
        self.at += name.len();
        self.skip_blanks();
        name
    }

    /// The next option's word, in lower case as listed; none at the end of the limit.
    pub fn option(&mut self, known: &[&'static str], algorithm: &str) -> Result<Option<&'static str>> {
        let token = self.peek();
        if matches!(token, "" | ";" | "," | "|") {
            return Ok(None);
        }
        match known.iter().find(|word| word.eq_ignore_ascii_case(token)) {
            Some(word) => {
                self.take();
                Ok(Some(word))
            }
            None if known.is_empty() => {
                Err(self.error_here(&format!("{algorithm} has no options; between limits write ;")))
            }
            None => {
                let words = known.join(", ");
                let message = format!("no option of {algorithm} (it has: {words}; between limits write ;)");
                Err(self.error_known(&message, known, token))
            }
        }
    }

    /// The one option that an algorithm has, with its number; none when it isn't written.
    pub fn number_option(
        &mut self,
        word: &'static str,
        algorithm: &str,
        meaning: &str,
    ) -> Result<Option<u64>> {
        let mut value = None;
        while self.option(&[word], algorithm)?.is_some() {
            let number = self.number(meaning)?;
            if value.replace(number).is_some() {
                return Err(self.error_at_last(&format!("{word} is written twice")));
            }
        }
        Ok(value)
    }

    pub fn end(&self, expected: &str) -> Result<()> {
        if self.peek().is_empty() { Ok(()) } else { Err(self.error_here(expected)) }
    }

    pub fn error_here(&self, message: &str) -> Error {
        self.error(self.at, message)
    }

    pub fn error_at_last(&self, message: &str) -> Error {
        self.error(self.last, message)
    }

    fn error_known(&self, message: &str, known: &[&str], word: &str) -> Error {
        self.error_here(&with_nearest(message, known, word))
    }

    /// An error about the word that [`word_before`](Self::word_before) took.
    pub fn error_before(&self, message: &str, known: &[&str], word: &str) -> Error {
        self.error_at_last(&with_nearest(message, known, word))
    }

    /// Adds the place to an error about numbers, which knows none.
    pub fn locate(&self, start: usize, error: Error) -> Error {
        if error.kind() != ErrorKind::InvalidLimit || error.to_string().starts_with("in \"") {
            return error;
        }
        self.error(start, &error.to_string())
    }

    fn error(&self, at: usize, message: &str) -> Error {
        let here = Self { text: self.text, at, last: at }.peek();
        if here.is_empty() {
            return invalid(format!("in {:?}, at the end: {message}", self.text));
        }
        let column = self.text[..at].chars().count() + 1;
        invalid(format!("in {:?}, at character {column} ({here:?}): {message}", self.text))
    }
}

fn with_nearest(message: &str, known: &[&str], word: &str) -> String {
    match nearest(&word.to_ascii_lowercase(), known) {
        Some(meant) => format!("{message}; did you mean {meant:?}?"),
        None if known.len() > 1 => format!("{message}; it must be one of {}", known.join(", ")),
        None => message.to_owned(),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}
