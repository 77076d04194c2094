//! A connection to one server: a command out, its reply in, by a deadline.

use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use super::error;
use super::socket::{Socket, left};
#[cfg(feature = "tls")]
use super::tls::Session;
use super::uri::{Address, Settings};
use super::wire::{Args, Malformed, Reply, command};
use crate::{Error, ErrorKind};

/// How long a connection is idle before it is looked at whether it still is one.
const FRESH: Duration = Duration::from_millis(200);

/// Room for a usual reply.
const ROOM: usize = 4096;

pub(super) struct Link {
    socket: Socket,
    #[cfg(feature = "tls")]
    session: Option<Box<Session>>,
    input: Vec<u8>,
    /// What an event loop could not send yet.
    output: Vec<u8>,
    /// How long the kernel waits for a reply by itself: less than a whole deadline.
    patience: Duration,
    used: Instant,
}

/// Why a connection is of no use any more.
#[derive(Debug)]
pub(super) enum Lost {
    /// The deadline has passed.
    Late,
    Io(io::Error),
    Malformed(String),
    /// The server refused the greeting: wrong password, no such database.
    Refused(String),
}

impl From<io::Error> for Lost {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Late,
            _ => Self::Io(error),
        }
    }
}

impl From<Malformed> for Lost {
    fn from(Malformed(text): Malformed) -> Self {
        Self::Malformed(text)
    }
}

impl Link {
    /// Connects, and says who asks.
    pub fn open(settings: &Settings, deadline: Instant) -> Result<Self, Lost> {
        let socket = match &settings.address {
            Address::Tcp { host, port } => Socket::tcp(host, *port, deadline)?,
            Address::Unix(path) => Socket::unix(path)?,
        };
        let patience = settings.timeout - settings.timeout / 8;
        socket.set_patience(patience)?;
        let mut link = Self {
            #[cfg(feature = "tls")]
            session: match &settings.tls {
                Some(tls) => Some(Box::new(Session::new(tls, &settings.address)?)),
                None => None,
            },
            socket,
            input: Vec::with_capacity(ROOM),
            output: Vec::new(),
            patience,
            used: Instant::now(),
        };
        #[cfg(feature = "tls")]
        if let Some(session) = &mut link.session {
            session.send(&link.socket, &[], deadline)?;
        }
        let password = settings.password()?;
        for greeting in greetings(settings, password.as_deref()) {
            if let Reply::Error(text) = link.exchange(&greeting, deadline)? {
                return Err(Lost::Refused(without(password.as_deref(), &text)));
            }
        }
        // That it answers is found out here, where nobody waits for it.
        match link.exchange(&command(&[b"PING"]), deadline)? {
            // Who may not ask has an answer, too.
            Reply::Error(text) if error::code(&text) != "NOPERM" => Err(Lost::Refused(text)),
            _ => Ok(link),
        }
    }

    /// Sends a command, or what is left of earlier ones, as far as that goes without waiting; true when all
    /// is sent.
    pub fn push(&mut self, command: Option<&Args>) -> Result<bool, Lost> {
        if let Some(command) = command {
            command.command(&mut self.output);
        }
        #[cfg(feature = "tls")]
        if let Some(session) = &mut self.session {
            session.put(&std::mem::take(&mut self.output))?;
            return Ok(session.flush_now(&self.socket)?);
        }
        while !self.output.is_empty() {
            match self.socket.send(&self.output) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Takes in what is there, without waiting.
    pub fn pull(&mut self) -> Result<(), Lost> {
        #[cfg(feature = "tls")]
        if let Some(session) = &mut self.session {
            return Ok(session.receive_now(&self.socket, &mut self.input)?);
        }
        loop {
            let start = self.input.len();
            self.input.resize(start + 4 * ROOM, 0);
            let received = self.socket.receive(&mut self.input[start..]);
            self.input.truncate(start + received.as_ref().map_or(0, |&length| length));
            match received {
                Ok(0) => return Err(closed().into()),
                Ok(length) if length < 4 * ROOM => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next reply of those that were taken in.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, Lost> {
        let Some((reply, length)) = Reply::parse(&self.input)? else { return Ok(None) };
        self.input.drain(..length);
        self.used = Instant::now();
        Ok(Some(reply))
    }

    /// When it was last heard of.
    pub fn last_used(&self) -> Instant {
        self.used
    }

    pub fn raw_fd(&self) -> RawFd {
        self.socket.raw_fd()
    }

    /// Whether it can be used: one that was idle is looked at first, since servers and firewalls drop
    /// such.
    pub fn is_alive(&self) -> bool {
        self.used.elapsed() < FRESH || self.socket.is_quiet()
    }

    /// Sends a command and waits for its reply.
    pub fn exchange(&mut self, command: &Args, deadline: Instant) -> Result<Reply, Lost> {
        let mut bytes = Vec::with_capacity(512);
        command.command(&mut bytes);
        self.send(&bytes, deadline)?;
        let reply = self.reply(deadline)?;
        // It would be taken for the answer to what is asked next.
        if !self.input.is_empty() {
            return Err(Lost::Malformed("what answers there says more than it was asked".into()));
        }
        Ok(reply)
    }

    fn reply(&mut self, deadline: Instant) -> Result<Reply, Lost> {
        loop {
            if let Some(reply) = self.next_reply()? {
                return Ok(reply);
            }
            self.receive(deadline)?;
        }
    }

    fn send(&mut self, bytes: &[u8], deadline: Instant) -> Result<(), Lost> {
        #[cfg(feature = "tls")]
        if let Some(session) = &mut self.session {
            return Ok(session.send(&self.socket, bytes, deadline)?);
        }
        Ok(send_all(&self.socket, bytes, deadline)?)
    }

    fn receive(&mut self, deadline: Instant) -> Result<(), Lost> {
        #[cfg(feature = "tls")]
        if let Some(session) = &mut self.session {
            return Ok(session.receive(&self.socket, &mut self.input, deadline)?);
        }
        let start = self.input.len();
        self.input.resize(start + ROOM, 0);
        let received = receive_some(&self.socket, &mut self.input[start..], self.patience, deadline);
        self.input.truncate(start + received.as_ref().map_or(0, |&length| length));
        received?;
        Ok(())
    }
}

/// Sends all of it by the deadline.
pub(super) fn send_all(socket: &Socket, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.send(bytes) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.wait(true, deadline)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives something by the deadline. Where nearly all of the time is left, the kernel waits for most of it
/// in the same step, which is one call in place of two.
pub(super) fn receive_some(
    socket: &Socket,
    into: &mut [u8],
    patience: Duration,
    deadline: Instant,
) -> io::Result<usize> {
    if left(deadline)? >= patience {
        match socket.receive_or_wait(into) {
            Ok(0) => return Err(closed()),
            Ok(length) => return Ok(length),
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    loop {
        match socket.receive(into) {
            Ok(0) => return Err(closed()),
            Ok(length) => return Ok(length),
            Err(error) if is_passing(&error) => socket.wait(false, deadline)?,
            Err(error) => return Err(error),
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

pub(super) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

/// What is said first on a new connection: as whom one asks, and of which database.
fn greetings(settings: &Settings, password: Option<&str>) -> Vec<Args> {
    let mut greetings = Vec::new();
    match (&settings.user, password) {
        (Some(user), password) => {
            greetings.push(command(&[b"AUTH", user.as_bytes(), password.unwrap_or_default().as_bytes()]));
        }
        (None, Some(password)) => greetings.push(command(&[b"AUTH", password.as_bytes()])),
        (None, None) => {}
    }
    if settings.database != 0 {
        greetings.push(command(&[b"SELECT", settings.database.to_string().as_bytes()]));
    }
    greetings
}

/// A server that does not know a command says what it was sent; a denial is a sentence of its own.
fn without(password: Option<&str>, text: &str) -> String {
    let known = text.split(", with args").next().unwrap_or_default();
    match password {
        Some(password) if !password.is_empty() && error::kind(text) != ErrorKind::StoreDenied => {
            known.replace(password, "…")
        }
        _ => known.to_owned(),
    }
}

impl Lost {
    /// As an error about `server`; `sent` tells whether what was asked may have reached it.
    pub fn error(&self, server: &dyn std::fmt::Display, sent: bool) -> Error {
        let (kind, text) = match self {
            Self::Late if sent => (
                ErrorKind::StoreTimeout,
                "no answer within the deadline; what was asked may have been done".into(),
            ),
            Self::Late => (
                ErrorKind::StoreTimeout,
                "no connection was free within the deadline; nothing was asked".into(),
            ),
            Self::Io(error) => (ErrorKind::StoreUnavailable, error.to_string()),
            Self::Malformed(text) => (ErrorKind::StoreUnavailable, text.clone()),
            Self::Refused(text) => (error::kind(text), error::line(text)),
        };
        let error = Error::new(kind, format!("{server}: {text}"));
        // What a server refuses it has not done.
        if sent && !matches!(self, Self::Refused(_)) { error.doubtful() } else { error }
    }
}
