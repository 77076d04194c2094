//! The desk at which callers meet: those who wait at the same time share a round trip.
//!
//! Whoever finds a connection free leads: on his own thread he sends what has gathered, his own with
//! it, and hands out the answers. The others wait for theirs, each until his own deadline. So one who is
//! alone waits for nobody, and many need few round trips, without a thread that is handed things and
//! without a delay to gather. Connecting, which may wait for a name, is done by a thread that lives as
//! long as it takes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::batch::{Ask, Command, part};
use super::circuit::Leave;
use super::connecting::First;
use super::error;
use super::link::{Link, Lost};
use super::queue::{Caller, Queue};
use super::uri::Settings;
use super::wire::Reply;
use crate::fork;
use crate::{Error, ErrorKind, News, Result};

/// How much longer than his own deadline one leads for others.
const GRACE: Duration = Duration::from_millis(10);

pub(super) struct Desk {
    settings: Settings,
    inner: Mutex<Queue>,
    has_news: AtomicBool,
}

impl Desk {
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self { settings, inner: Mutex::new(Queue::new()), has_news: AtomicBool::new(false) })
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Asks the server, with others where others wait, and returns its reply by the deadline; where none is
    /// given, by that of a decision which begins now.
    pub fn call(self: &Arc<Self>, ask: Ask, deadline: Option<Instant>) -> Result<Reply> {
        let begun = Instant::now();
        let mut inner = self.lock();
        if let Leave::Refused { probe } = inner.circuit.ask(begun) {
            if probe {
                self.connect(&mut inner);
            }
            return Err(inner.circuit.refusal());
        }
        let deadline = deadline.unwrap_or_else(|| begun + self.patience(&inner));
        self.wait(inner, ask, deadline)
    }

    /// Asks the server, also where it is known to be away: for an operator, who must know.
    pub fn insist(self: &Arc<Self>, ask: Ask) -> Result<Reply> {
        let inner = self.lock();
        let deadline = Instant::now() + self.patience(&inner);
        self.wait(inner, ask, deadline)
    }

    fn wait<'a>(
        self: &'a Arc<Self>,
        mut inner: MutexGuard<'a, Queue>,
        ask: Ask,
        deadline: Instant,
    ) -> Result<Reply> {
        let caller = Arc::new(Caller { ask, deadline, answer: OnceLock::new(), wake: Condvar::new() });
        inner.waiting.push_back(Arc::clone(&caller));
        loop {
            if let Some(answer) = caller.answer.get() {
                return answer.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let error = inner.give_up(&caller, &self.settings);
                // It may have been his turn to lead.
                inner.wake_next(self.settings.pool);
                self.announce(&inner);
                return Err(error);
            }
            if let Some(link) = inner.link_to_lead(self.settings.pool) {
                inner = self.lead(inner, link, deadline);
                continue;
            }
            if inner.leading == 0 || inner.is_crowded(self.settings.pool) {
                self.connect(&mut inner);
                if caller.answer.get().is_some() {
                    continue;
                }
            }
            inner = caller.wake.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The oldest of what an operator should know and was not told yet.
    pub fn next_news(&self) -> Option<News> {
        if !self.has_news.load(Ordering::Relaxed) {
            return None;
        }
        let mut inner = self.lock();
        let news = inner.circuit.next_news();
        self.has_news.store(inner.circuit.has_news(), Ordering::Relaxed);
        news.map(|News { text, is_error }| News {
            // A reason begins with the address as well.
            text: format!(
                "the store {} {}",
                self.settings,
                text.replace(&format!("{}: ", self.settings), "")
            ),
            is_error,
        })
    }

    /// A key holds a value that is not ours.
    pub fn found_corrupt(&self, error: &Error) {
        let mut inner = self.lock();
        inner.circuit.found_corrupt(error.clone());
        self.announce(&inner);
    }

    /// What the circuit is, what failed last and when, and how often it opened.
    pub fn circuit(&self) -> (&'static str, Option<(Error, Instant)>, u64) {
        let inner = self.lock();
        (inner.circuit.state(), inner.circuit.reason.clone(), inner.circuit.opened)
    }

    /// How long until it may be known whether the server decides: until the next probe, or as long as one
    /// who asks waits.
    pub fn known_after(&self) -> Duration {
        let probe_at = self.lock().circuit.probe_at();
        probe_at.map_or(self.settings.timeout, |at| at.saturating_duration_since(Instant::now()))
    }

    /// The lock, for the time around a fork.
    pub fn hold(&self) -> Box<dyn fork::Held + '_> {
        Box::new(fork::lock(&self.inner))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        let mut inner = fork::lock(&self.inner);
        let generation = fork::generation();
        if inner.generation != generation {
            inner.leave_to_parent();
            inner.generation = generation;
        }
        inner
    }

    fn patience(&self, inner: &Queue) -> Duration {
        let Settings { timeout, connect_timeout, .. } = self.settings;
        timeout.max(match inner.first {
            First::Untried => connect_timeout,
            First::Begun(begun) => connect_timeout.saturating_sub(begun.elapsed()),
            First::Over => Duration::ZERO,
        })
    }

    /// Leads: a round trip for those who wait, and their answers.
    fn lead<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Queue>,
        mut link: Link,
        deadline: Instant,
    ) -> MutexGuard<'a, Queue> {
        let callers = inner.gather();
        inner.leading += 1;
        // While this one is on its way, others may lead with another connection.
        inner.wake_next(self.settings.pool);
        drop(inner);
        let command = Command::of(callers.iter().map(|caller| &caller.ask));
        // One whose time is nearly over must not cut off those who came later.
        let latest = callers.iter().map(|caller| caller.deadline).max().unwrap_or(deadline);
        let reply = round_trip(&mut link, &command, latest.min(deadline + GRACE));
        let mut inner = self.lock();
        inner.leading = inner.leading.saturating_sub(1);
        let now = Instant::now();
        match reply {
            Ok(reply) => {
                match &reply {
                    // What is asked beside decisions, such as how the server is, says nothing of them: a
                    // user may have the rights to one and not to the other.
                    _ if callers.iter().any(|caller| matches!(caller.ask, Ask::Plain(_))) => {
                        inner.circuit.given_up();
                    }
                    reply => self.judge(&mut inner, reply, now),
                }
                match &reply {
                    // A new connection may be to another server, or as one who may ask.
                    Reply::Error(text) if error::is_elsewhere(text) => {
                        inner.forget(link.raw_fd());
                        inner.forget_idle();
                    }
                    _ => inner.idle.push(link),
                }
                // What fails, fails for all of them.
                let replies = match reply {
                    Reply::Error(_) => Some(vec![reply; callers.len()]),
                    reply => part(reply, callers.iter().map(|caller| &caller.ask)),
                };
                let replies = replies.map_or_else(Vec::new, |replies| replies.into_iter().map(Ok).collect());
                let missing = std::iter::repeat(Err(self.unknown_shape()));
                for (caller, answer) in callers.iter().zip(replies.into_iter().chain(missing)) {
                    caller.tell(answer);
                }
            }
            Err(lost) => {
                let error = lost.error(&self.settings, true);
                inner.circuit.failed(now, error.clone());
                inner.forget(link.raw_fd());
                // The idle ones most likely share its fate.
                inner.forget_idle();
                callers.iter().for_each(|caller| caller.tell(Err(error.clone())));
            }
        }
        inner.wake_next(self.settings.pool);
        self.announce(&inner);
        inner
    }

    pub(super) fn announce(&self, inner: &Queue) {
        if inner.circuit.has_news() {
            self.has_news.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the server may be asked now, and the error where it may not.
    pub fn leave(&self) -> std::result::Result<(), (bool, Error)> {
        let mut inner = self.lock();
        match inner.circuit.ask(Instant::now()) {
            Leave::Ask => Ok(()),
            Leave::Refused { probe } => Err((probe, inner.circuit.refusal())),
        }
    }

    /// How long a caller that asks now waits at most.
    pub fn patience_now(&self) -> Duration {
        self.patience(&self.lock())
    }

    /// Looks for the server, for all who will ask it.
    pub fn probe(self: &Arc<Self>) {
        self.connect(&mut self.lock());
    }

    /// What a reply says of the server, where others read it.
    pub fn answered(&self, reply: &Reply) {
        let mut inner = self.lock();
        self.judge(&mut inner, reply, Instant::now());
        self.announce(&inner);
    }

    /// What the answer to a script says of the server: all of ours answer with integers.
    fn judge(&self, inner: &mut Queue, reply: &Reply, now: Instant) {
        match reply {
            Reply::Error(text) if is_failure(text) => inner.circuit.failed(now, self.error(text)),
            Reply::Integers(_) | Reply::Error(_) => inner.circuit.succeeded(),
            _ => inner.circuit.failed(now, self.unknown_shape()),
        }
    }

    pub fn unknown_shape(&self) -> Error {
        Error::new(ErrorKind::StoreCorrupt, format!("{} gave an answer of an unknown shape", self.settings))
    }

    /// That an answer was lost, where others waited for it.
    pub fn lost(&self, error: &Error) {
        let mut inner = self.lock();
        inner.circuit.failed(Instant::now(), error.clone());
        self.announce(&inner);
    }

    /// What the server's error is to a caller.
    pub fn error(&self, text: &str) -> Error {
        Error::new(error::kind(text), format!("{}: {}", self.settings, error::line(text)))
    }

    pub(super) fn unavailable(&self, why: &str) -> Error {
        Error::new(ErrorKind::StoreUnavailable, format!("{}: {why}", self.settings))
    }
}

fn round_trip(link: &mut Link, command: &Command, deadline: Instant) -> std::result::Result<Reply, Lost> {
    match link.exchange(&command.args(false), deadline)? {
        // Nothing was executed, so that sending it again with the source charges once.
        Reply::Error(text) if error::code(&text) == "NOSCRIPT" => {
            link.exchange(&command.args(true), deadline)
        }
        reply => Ok(reply),
    }
}

/// Whether an error says that the server does not decide, rather than something about one key.
fn is_failure(text: &str) -> bool {
    error::code(text) != "WRONGTYPE"
}
