//! What goes over the wire: commands out, replies in (RESP2). Only what the scripts and the greeting
//! need of it: integers, texts, errors, and flat arrays of them.

/// The longest reply: more is none of ours.
const MOST_BYTES: usize = 1 << 20;

/// Arguments of a command, packed one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Args {
    bytes: Vec<u8>,
    count: usize,
}

impl Args {
    #[expect(clippy::needless_pass_by_value, reason = "numbers and texts, written out where they stand")]
    pub fn arg(&mut self, argument: impl Argument) -> &mut Self {
        argument.pack(self);
        self
    }

    pub fn args(&mut self, arguments: &Self) -> &mut Self {
        self.bytes.extend_from_slice(&arguments.bytes);
        self.count += arguments.count;
        self
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The command that these arguments are, its name the first.
    pub fn command(&self, out: &mut Vec<u8>) {
        out.push(b'*');
        digits(self.count as u64, out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.bytes);
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.push(b'$');
        digits(bytes.len() as u64, &mut self.bytes);
        self.bytes.extend_from_slice(b"\r\n");
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
        self.count += 1;
    }
}

/// The command of these words.
pub(super) fn command(words: &[&[u8]]) -> Args {
    let mut args = Args::default();
    words.iter().for_each(|word| args.push(word));
    args
}

/// What an argument can be made of.
pub(super) trait Argument {
    fn pack(&self, args: &mut Args);
}

impl Argument for &str {
    fn pack(&self, args: &mut Args) {
        args.push(self.as_bytes());
    }
}

impl Argument for String {
    fn pack(&self, args: &mut Args) {
        args.push(self.as_bytes());
    }
}

impl Argument for u64 {
    fn pack(&self, args: &mut Args) {
        let mut text = Vec::with_capacity(20);
        digits(*self, &mut text);
        args.push(&text);
    }
}

impl Argument for u32 {
    fn pack(&self, args: &mut Args) {
        u64::from(*self).pack(args);
    }
}

impl Argument for usize {
    fn pack(&self, args: &mut Args) {
        (*self as u64).pack(args);
    }
}

impl Argument for bool {
    fn pack(&self, args: &mut Args) {
        u64::from(*self).pack(args);
    }
}

fn digits(mut number: u64, out: &mut Vec<u8>) {
    let mut text = [0; 20];
    let mut start = text.len();
    loop {
        start -= 1;
        text[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[start..]);
}

/// A server's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// An integer, or an array of nothing else.
    Integers(Vec<i64>),
    Text(String),
    /// An array of texts.
    Texts(Vec<String>),
    /// An error: its code and the sentence behind it, in one.
    Error(String),
    /// Nothing, or what none of our commands is answered with.
    Other,
}

/// What answers is not a Redis, or says what we did not ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub String);

impl Reply {
    /// The first reply in `bytes` and its length; none while it is not whole.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        match Self::parse_whole(bytes)? {
            // Behind a whole one there may be any number of others.
            None if bytes.len() > MOST_BYTES => {
                Err(Malformed(format!("a reply of more than {MOST_BYTES} bytes")))
            }
            parsed => Ok(parsed),
        }
    }

    fn parse_whole(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some((line, mut at)) = line(bytes, 0)? else { return Ok(None) };
        let reply = match line.split_first() {
            Some((b'+', text)) => Self::Text(String::from_utf8_lossy(text).into_owned()),
            Some((b'-', text)) => Self::Error(String::from_utf8_lossy(text).into_owned()),
            Some((b':', number)) => Self::Integers(vec![integer(number)?]),
            Some((b'$', length)) => match bulk(bytes, at, integer(length)?)? {
                Some((text, end)) => {
                    at = end;
                    text.map_or(Self::Other, |text| Self::Text(String::from_utf8_lossy(text).into_owned()))
                }
                None => return Ok(None),
            },
            Some((b'*', count)) => match array(bytes, at, integer(count)?)? {
                Some((reply, end)) => {
                    at = end;
                    reply
                }
                None => return Ok(None),
            },
            _ => return Err(malformed(line)),
        };
        Ok(Some((reply, at)))
    }
}

/// An array of integers or of texts; of any other only its end is of interest.
fn array(bytes: &[u8], mut at: usize, count: i64) -> Result<Option<(Reply, usize)>, Malformed> {
    let (mut numbers, mut texts) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let Some(&first) = bytes.get(at) else { return Ok(None) };
        // An array in an array is none of ours.
        if first == b'*' {
            return Err(malformed(&bytes[at..bytes.len().min(at + 40)]));
        }
        let Some((reply, length)) = Reply::parse_whole(&bytes[at..])? else { return Ok(None) };
        at += length;
        match reply {
            Reply::Integers(number) => numbers.extend(number),
            Reply::Text(text) => texts.push(text),
            _ => {}
        }
    }
    let all = usize::try_from(count).unwrap_or(usize::MAX);
    let reply = match (numbers.len() == all, texts.len() == all && all > 0) {
        (true, _) => Reply::Integers(numbers),
        (_, true) => Reply::Texts(texts),
        _ => Reply::Other,
    };
    Ok(Some((reply, at)))
}

type Bulk<'a> = (Option<&'a [u8]>, usize);

fn bulk(bytes: &[u8], at: usize, length: i64) -> Result<Option<Bulk<'_>>, Malformed> {
    if length < 0 {
        return Ok(Some((None, at)));
    }
    let length = usize::try_from(length).ok().filter(|&length| length <= MOST_BYTES);
    let length = length.ok_or_else(|| Malformed("a text of more than a megabyte".into()))?;
    let end = at + length;
    match bytes.get(end..end + 2) {
        Some(b"\r\n") => Ok(Some((Some(&bytes[at..end]), end + 2))),
        Some(other) => Err(malformed(other)),
        None => Ok(None),
    }
}

/// The line that begins at `at`, without its end, and where the next one begins.
fn line(bytes: &[u8], at: usize) -> Result<Option<(&[u8], usize)>, Malformed> {
    let rest = &bytes[at..];
    // What begins like none of ours never will be: an answer in another protocol may have no line's end.
    if rest.first().is_some_and(|first| !b"+-:$*".contains(first)) {
        return Err(malformed(&rest[..rest.len().min(40)]));
    }
    let end = rest.iter().position(|&byte| byte == b'\r').filter(|&end| end + 1 < rest.len());
    match end {
        Some(end) if rest[end + 1] == b'\n' => Ok(Some((&rest[..end], at + end + 2))),
        Some(_) => Err(malformed(&rest[..rest.len().min(40)])),
        None => Ok(None),
    }
}

fn integer(text: &[u8]) -> Result<i64, Malformed> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| malformed(text))
}

fn malformed(bytes: &[u8]) -> Malformed {
    let text = String::from_utf8_lossy(bytes);
    // Who repeats what he was told repeats the password.
    let text = text.split_once("AUTH").map_or(&*text, |(before, _)| before);
    let text: String = text.chars().take(40).collect();
    Malformed(format!("what answers there is not a Redis: it said {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_packed_as_the_protocol_says() {
        let mut args = Args::default();
        args.arg("SET").arg(String::from("k")).arg(10_u64).arg(true);
        let mut out = Vec::new();
        args.command(&mut out);
        assert_eq!(out, b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n10\r\n$1\r\n1\r\n");
        assert_eq!(command(&[b"SET", b"k", b"10", b"1"]), args);
    }

    fn integers(numbers: &[i64]) -> Reply {
        Reply::Integers(numbers.to_vec())
    }

    #[test]
    fn a_reply_is_read_when_it_is_whole_and_not_before() {
        let bytes = b"*3\r\n:1\r\n:-22\r\n:333\r\n";
        for end in 0..bytes.len() {
            assert_eq!(Reply::parse(&bytes[..end]), Ok(None), "{end}");
        }
        let more = [bytes.as_slice(), b"+OK\r\n"].concat();
        assert_eq!(Reply::parse(&more), Ok(Some((integers(&[1, -22, 333]), bytes.len()))));
        assert_eq!(Reply::parse(b"$5\r\nhello\r\n"), Ok(Some((Reply::Text("hello".into()), 11))));
        assert_eq!(Reply::parse(b"$-1\r\n"), Ok(Some((Reply::Other, 5))));
        assert_eq!(Reply::parse(b"*2\r\n:1\r\n$1\r\nx\r\n"), Ok(Some((Reply::Other, 15))));
        let many = b":7\r\n".repeat(MOST_BYTES / 4 + 1);
        assert_eq!(Reply::parse(&many), Ok(Some((integers(&[7]), 4))));
        let endless = [b"*400000\r\n".as_slice(), &many].concat();
        assert!(Reply::parse(&endless).is_err());
        let error = Reply::Error("NOSCRIPT No matching script".into());
        assert_eq!(Reply::parse(b"-NOSCRIPT No matching script\r\n"), Ok(Some((error, 30))));
    }

    #[test]
    fn what_is_no_reply_is_an_error_at_its_first_byte() {
        for bytes in [
            b"HTTP/1.1 400".as_slice(),
            b"\x15\x03\x01",
            b":x\r\n",
            b"$99999999\r\n",
            b"+OK\rx",
            b"*1\r\n*1\r\n",
        ] {
            assert!(Reply::parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
