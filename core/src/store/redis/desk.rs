//! The desk at which callers meet: those who wait at the same time share a round trip.
//!
//! Whoever finds a connection free leads: on his own thread he sends what has gathered, his own with
//! it, and hands out the answers. The others wait for theirs, each until his own deadline. So one who is
//! alone waits for nobody, and many need few round trips, without a thread that is handed things and
//! without a delay to gather. Connecting, which may wait for a name, is done by a thread that lives as
//! long as it takes.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::batch::{Ask, Command, MOST_GROUPS, part};
use super::circuit::{Circuit, Leave};
use super::error;
use super::link::{Link, Lost};
use super::uri::Settings;
use super::wire::Reply;
use crate::fork;
use crate::{Error, ErrorKind, News, Result};

/// How much longer than his own deadline one leads for others.
const GRACE: Duration = Duration::from_millis(10);

/// How long nobody tries to have one more connection after it could not be had.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

pub(super) struct Desk {
    settings: Settings,
    inner: Mutex<Inner>,
    has_news: AtomicBool,
}

struct Inner {
    /// Of which process the rest is.
    generation: u32,
    idle: Vec<Link>,
    /// How many connections are with those who lead.
    leading: usize,
    /// Descriptors of all connections, which a forked child closes.
    open: Vec<RawFd>,
    is_connecting: bool,
    /// From when on one more connection may be tried, after it could not be had.
    more_from: Option<Instant>,
    first: First,
    waiting: VecDeque<Arc<Caller>>,
    circuit: Circuit,
}

/// One who waits for his answer.
struct Caller {
    ask: Ask,
    deadline: Instant,
    answer: OnceLock<Result<Reply>>,
    /// Notified when he is answered, or may lead.
    wake: Condvar,
}

impl Desk {
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self { settings, inner: Mutex::new(Inner::new()), has_news: AtomicBool::new(false) })
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
        mut inner: MutexGuard<'a, Inner>,
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

    fn lock(&self) -> MutexGuard<'_, Inner> {
        let mut inner = fork::lock(&self.inner);
        let generation = fork::generation();
        if inner.generation != generation {
            inner.leave_to_parent();
            inner.generation = generation;
        }
        inner
    }

    fn patience(&self, inner: &Inner) -> Duration {
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
        mut inner: MutexGuard<'a, Inner>,
        mut link: Link,
        deadline: Instant,
    ) -> MutexGuard<'a, Inner> {
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

    fn announce(&self, inner: &Inner) {
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
    fn judge(&self, inner: &mut Inner, reply: &Reply, now: Instant) {
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

    /// Makes a connection for another than those who meet here; `then` is called by the thread that made
    /// it. False where no thread can be started.
    pub fn connect_for(
        self: &Arc<Self>,
        then: impl FnOnce(std::result::Result<Link, Lost>) + Send + 'static,
    ) -> bool {
        self.lock().first.begin();
        let desk = Arc::clone(self);
        let started = spawn(move || {
            let link = Link::open(&desk.settings, desk.connect_deadline());
            let mut inner = desk.lock();
            inner.first = First::Over;
            match &link {
                Ok(_) => inner.circuit.found(),
                Err(lost) => inner.circuit.not_found(Instant::now(), lost.error(&desk.settings, false)),
            }
            desk.announce(&inner);
            drop(inner);
            then(link);
        });
        if let Err(error) = &started {
            self.lost(&self.unavailable(&format!("no thread to connect with: {error}")));
        }
        started.is_ok()
    }

    fn connect_deadline(&self) -> Instant {
        Instant::now() + self.settings.connect_timeout.max(self.settings.timeout)
    }

    /// Starts to connect, unless someone does.
    fn connect(self: &Arc<Self>, inner: &mut Inner) {
        if inner.is_connecting {
            return;
        }
        inner.is_connecting = true;
        inner.first.begin();
        let (desk, generation) = (Arc::clone(self), inner.generation);
        let started = spawn(move || {
            let link = Link::open(&desk.settings, desk.connect_deadline());
            desk.connected(link, generation);
        });
        if let Err(error) = started {
            inner.is_connecting = false;
            let error = self.unavailable(&format!("no thread to connect with: {error}"));
            inner.circuit.not_found(Instant::now(), error);
        }
    }

    fn connected(&self, link: std::result::Result<Link, Lost>, generation: u32) {
        let mut inner = self.lock();
        if inner.generation != generation {
            return;
        }
        (inner.is_connecting, inner.first) = (false, First::Over);
        match link {
            Ok(link) => {
                inner.circuit.found();
                inner.open.push(link.raw_fd());
                inner.idle.push(link);
                inner.wake_next(self.settings.pool);
            }
            // It was to be one more: who waits is served by those that there are.
            Err(_) if inner.leading > 0 => inner.more_from = Some(Instant::now() + BETWEEN_TRIES),
            Err(lost) => {
                let error = lost.error(&self.settings, false);
                inner.circuit.not_found(Instant::now(), error.clone());
                // Nothing was sent for those who wait: they need not wait for their deadlines.
                for caller in std::mem::take(&mut inner.waiting) {
                    caller.tell(Err(error.clone()));
                }
            }
        }
        self.announce(&inner);
    }

    /// What the server's error is to a caller.
    pub fn error(&self, text: &str) -> Error {
        Error::new(error::kind(text), format!("{}: {}", self.settings, error::line(text)))
    }

    fn unavailable(&self, why: &str) -> Error {
        Error::new(ErrorKind::StoreUnavailable, format!("{}: {why}", self.settings))
    }
}

/// The first connection of a process, which alone may take longer: a worker's first requests should not be
/// decided beside the store.
#[derive(Clone, Copy)]
enum First {
    Untried,
    Begun(Instant),
    Over,
}

impl First {
    fn begin(&mut self) {
        if let Self::Untried = self {
            *self = Self::Begun(Instant::now());
        }
    }
}

impl Inner {
    fn new() -> Self {
        Self {
            generation: fork::generation(),
            idle: Vec::new(),
            leading: 0,
            open: Vec::new(),
            is_connecting: false,
            more_from: None,
            first: First::Untried,
            waiting: VecDeque::new(),
            circuit: Circuit::new(),
        }
    }

    /// Whether more wait than one round trip takes, and one more connection may be made.
    fn is_crowded(&self, pool: usize) -> bool {
        self.waiting.len() >= MOST_GROUPS
            && self.leading < pool
            && self.idle.is_empty()
            && self.more_from.is_none_or(|from| from <= Instant::now())
    }

    /// A connection for the next one who leads. A second round trip goes out beside the first only when
    /// more wait than one can take.
    fn link_to_lead(&mut self, pool: usize) -> Option<Link> {
        if self.waiting.is_empty()
            || self.leading >= pool
            || (self.leading > 0 && self.waiting.len() < MOST_GROUPS)
        {
            return None;
        }
        while let Some(link) = self.idle.pop() {
            if link.is_alive() {
                return Some(link);
            }
            self.forget(link.raw_fd());
        }
        None
    }

    /// Those whose calls go out together: the first, and what can travel with it.
    fn gather(&mut self) -> Vec<Arc<Caller>> {
        let mut gathered: Vec<Arc<Caller>> = Vec::new();
        let mut groups = 0;
        while let Some(next) = self.waiting.front() {
            let own = next.ask.groups();
            let fits = own.is_some_and(|own| groups > 0 && groups + own <= MOST_GROUPS);
            if !gathered.is_empty() && !fits {
                break;
            }
            groups += own.unwrap_or(0);
            gathered.extend(self.waiting.pop_front());
        }
        gathered
    }

    fn wake_next(&self, pool: usize) {
        if self.leading < pool
            && let Some(next) = self.waiting.front()
        {
            next.wake.notify_one();
        }
    }

    /// Whose deadline has passed: what he asked was not sent yet, or may have been charged.
    fn give_up(&mut self, caller: &Arc<Caller>, settings: &Settings) -> Error {
        let place = self.waiting.iter().position(|other| Arc::ptr_eq(other, caller));
        let was_sent = place.and_then(|place| self.waiting.remove(place)).is_none();
        self.circuit.given_up();
        let error = Lost::Late.error(settings, was_sent);
        if !was_sent {
            self.circuit.failed(Instant::now(), error.clone());
        }
        error
    }

    fn forget(&mut self, fd: RawFd) {
        self.open.retain(|&open| open != fd);
    }

    fn forget_idle(&mut self) {
        for link in std::mem::take(&mut self.idle) {
            self.forget(link.raw_fd());
        }
    }

    /// In a child made by fork: the connections are its parent's, and not a word may be said on them.
    fn leave_to_parent(&mut self) {
        // Those that were on their way are held by threads which the child does not have.
        let idle: Vec<RawFd> = self.idle.iter().map(Link::raw_fd).collect();
        for fd in std::mem::take(&mut self.open) {
            if !idle.contains(&fd) {
                // SAFETY: it was open at the fork, and nobody in this process knows of it but this list.
                unsafe { libc::close(fd) };
            }
        }
        *self = Self::new();
    }
}

impl Caller {
    fn tell(&self, answer: Result<Reply>) {
        // He is told once: who has given up is not asked any more.
        let _ = self.answer.set(answer);
        self.wake.notify_one();
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

/// Starts a thread that connects.
fn spawn(connect: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let builder = thread::Builder::new().name("mirab-connect".into()).stack_size(256 * 1024);
    let started = builder.spawn(move || {
        block_signals();
        connect();
    });
    started.map(|_| ())
}

/// Signals are for the threads of the host.
fn block_signals() {
    let mut all = std::mem::MaybeUninit::uninit();
    // SAFETY: the set is initialised by the call, which cannot fail with these arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}
