//! A store's requests in an event loop: nothing here waits. The loop watches two descriptors, calls back
//! when they are ready or a time has come, and collects what was decided.
//!
//! What one turn of the loop asks is gathered, and goes out together; what the server could not answer by the
//! deadline anyway is not sent, so that it charges for nothing. Connecting is done by a thread that
//! lives as long as it takes and writes a byte to the second descriptor.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::batch::{Ask, Command, MOST_GROUPS, part};
use super::link::{Link, Lost};
use super::wire::Reply;
use super::{Prepared, RedisStore, error};
use crate::clock::Time;
use crate::fork;
use crate::policy::Policy;
use crate::store::charge::{Mode, Outcome, Request};
use crate::{Error, ErrorKind, Result};

/// What an event loop does next for a driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The connection: to be watched for reading; none while there is none. One that is named no more is
    /// closed by the next turn, so that it can be watched no more before it is.
    pub link: Option<RawFd>,
    /// Which connection that is: another one may have the same descriptor.
    pub connection: u64,
    /// Whether it is to be watched for writing, too.
    pub writes: bool,
    /// When to call `turn` again, if nothing else happens.
    pub within: Option<Duration>,
}

/// How many flights are on their way at once: the server has something to do, and what waits is not sent in vain.
const IN_THE_AIR: usize = 8;

/// What is sent in a turn is sent a little later than its deadline was set.
const SLACK: Duration = Duration::from_millis(2);

/// One request, from when it was asked until it is answered.
struct Waiting<T> {
    ask: Ask,
    prepared: Prepared,
    /// None when he has given up: then the answer is only read.
    asker: Option<T>,
    /// From the first turn on: as long as the loop is busy with other things, nobody waits for the store.
    deadline: Option<Instant>,
    asked_again: bool,
}

/// Requests that are on their way together.
struct Flight<T> {
    command: Command,
    with_source: bool,
    sent: Instant,
    waiting: Vec<Waiting<T>>,
}

impl<T> Waiting<T> {
    fn is_late(&self, now: Instant) -> bool {
        self.asker.is_some() && self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

pub(crate) struct Driver<T> {
    store: Arc<RedisStore>,
    link: Option<Link>,
    /// A connection that is of no use any more, and that the loop may still watch.
    parting: Option<Link>,
    connection: u64,
    writes: bool,
    gathered: VecDeque<Waiting<T>>,
    flights: VecDeque<Flight<T>>,
    answered: Vec<(T, Result<Outcome>)>,
    arrival: Arc<Arrival>,
    woken: UnixStream,
    generation: u32,
}

/// Where the thread that connects leaves what came of it.
struct Arrival {
    link: Mutex<Option<std::result::Result<Link, Lost>>>,
    is_connecting: AtomicBool,
    wake: UnixStream,
}

impl<T> Driver<T> {
    pub fn new(store: &Arc<RedisStore>) -> Result<Self> {
        let pair = UnixStream::pair().and_then(|(wake, woken)| {
            wake.set_nonblocking(true)?;
            woken.set_nonblocking(true)?;
            Ok((wake, woken))
        });
        let (wake, woken) = pair.map_err(|error| {
            Error::new(ErrorKind::StoreUnavailable, format!("no descriptors for an event loop: {error}"))
        })?;
        let arrival = Arrival { link: Mutex::default(), is_connecting: false.into(), wake };
        Ok(Self {
            store: Arc::clone(store),
            link: None,
            parting: None,
            connection: 0,
            writes: false,
            gathered: VecDeque::new(),
            flights: VecDeque::new(),
            answered: Vec::new(),
            arrival: Arc::new(arrival),
            woken,
            generation: fork::generation(),
        })
    }

    pub fn is_of(&self, store: &Arc<RedisStore>) -> bool {
        Arc::ptr_eq(&self.store, store)
    }

    /// The descriptor that is readable when a connection is there, or could not be made.
    pub fn wake_fd(&self) -> RawFd {
        self.woken.as_raw_fd()
    }

    /// Takes a request, for the next [`turn`](Self::turn) to send. The outcome at once where a refusal is
    /// remembered; an error at once while the store is not asked.
    pub fn ask(
        &mut self,
        policy: &Policy,
        request: &Request<'_>,
        mode: Mode,
        time: Time,
        asker: T,
    ) -> Result<Option<(T, Outcome)>> {
        self.leave_to_parent();
        if let Some(outcome) = self.store.recall(request, mode, time) {
            return Ok(Some((asker, outcome)));
        }
        let desk = &self.store.desk;
        if let Err((probe, refusal)) = desk.leave() {
            if probe {
                desk.probe();
            }
            return Err(refusal);
        }
        let near = crate::clock::resolve(time).wall;
        let (ask, prepared) = self.store.prepare(Prepared::new(policy, request, mode, time), near);
        self.gathered.push_back(Waiting {
            ask,
            prepared,
            asker: Some(asker),
            deadline: None,
            asked_again: false,
        });
        Ok(None)
    }

    /// Does what can be done without waiting: takes what has arrived, sends what was gathered, gives up
    /// what is late. Then says what to watch.
    pub fn turn(&mut self) -> Watch {
        self.leave_to_parent();
        self.parting = None;
        self.begin_to_wait();
        self.arrive();
        if let Err(lost) = self.exchange() {
            self.lose(&lost);
        }
        self.give_up_late();
        if self.link.is_none() && !self.gathered.is_empty() {
            self.connect();
        }
        let sent = self.flights.iter().flat_map(|flight| &flight.waiting);
        let deadlines = self.gathered.front().into_iter().chain(sent);
        let next = deadlines.filter(|it| it.asker.is_some()).filter_map(|it| it.deadline).min();
        Watch {
            link: self.link.as_ref().map(Link::raw_fd),
            connection: self.connection,
            writes: self.writes,
            within: match &self.parting {
                Some(_) => Some(Duration::ZERO),
                None => next.map(|next| next.saturating_duration_since(Instant::now())),
            },
        }
    }

    /// What was answered since it was last asked, with who asked it.
    pub fn take_answered(&mut self) -> Vec<(T, Result<Outcome>)> {
        std::mem::take(&mut self.answered)
    }

    fn begin_to_wait(&mut self) {
        // Those who came last have none yet.
        if self.gathered.back().is_some_and(|last| last.deadline.is_none()) {
            let deadline = Instant::now() + self.store.desk.patience_now();
            let all = self.gathered.iter_mut().rev();
            all.take_while(|it| it.deadline.is_none()).for_each(|it| it.deadline = Some(deadline));
        }
    }

    fn arrive(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(read) if read > 0) {}
        let arrived = fork::lock(&self.arrival.link).take();
        match arrived {
            Some(Ok(link)) => {
                self.link = Some(link);
                self.connection += 1;
            }
            Some(Err(lost)) => {
                let error = lost.error(self.store.settings(), false);
                let gathered = std::mem::take(&mut self.gathered);
                self.fail(gathered, &error);
            }
            None => {}
        }
    }

    fn connect(&self) {
        if self.arrival.is_connecting.swap(true, Ordering::AcqRel) {
            return;
        }
        let arrival = Arc::clone(&self.arrival);
        let started = self.store.desk.connect_for(move |link| {
            *fork::lock(&arrival.link) = Some(link);
            arrival.is_connecting.store(false, Ordering::Release);
            // When it is full the loop is awake anyway.
            let _ = (&arrival.wake).write(&[1]);
        });
        if !started {
            self.arrival.is_connecting.store(false, Ordering::Release);
        }
    }

    /// Takes in what has come on the connection, and sends what was gathered.
    fn exchange(&mut self) -> std::result::Result<(), Lost> {
        let Some(mut link) = self.link.take() else { return Ok(()) };
        let is_kept = self.exchange_on(&mut link);
        match is_kept {
            Ok(true) => self.link = Some(link),
            Ok(false) | Err(_) => (self.parting, self.writes) = (Some(link), false),
        }
        is_kept.map(|_| ())
    }

    /// As [`exchange`](Self::exchange); false where the connection ended while nothing was asked.
    fn exchange_on(&mut self, link: &mut Link) -> std::result::Result<bool, Lost> {
        if !self.flights.is_empty() {
            link.pull()?;
            while let Some(reply) = link.next_reply()? {
                self.land(link, reply)?;
            }
        } else if !self.is_of_use(link) {
            // Nothing is lost but the connection.
            return Ok(false);
        }
        self.writes = !link.push(None)?;
        while !self.gathered.is_empty() && self.flights.len() < IN_THE_AIR {
            let flight = self.gather();
            let command = flight.command.args(false);
            // Where it cannot be sent, it is lost with the connection.
            self.flights.push_back(flight);
            self.writes = !link.push(Some(&command))?;
        }
        Ok(true)
    }

    /// Whether a connection on which nothing is on its way can be used.
    fn is_of_use(&self, link: &mut Link) -> bool {
        if !self.gathered.is_empty() {
            return link.is_alive();
        }
        // The loop may have been woken since it ended, and would be again and again.
        link.pull().is_ok() && matches!(link.next_reply(), Ok(None))
    }

    /// Those whose requests go out together.
    fn gather(&mut self) -> Flight<T> {
        let mut waiting: Vec<Waiting<T>> = Vec::new();
        let mut groups = 0;
        while let Some(next) = self.gathered.front() {
            let own = next.ask.groups();
            if !waiting.is_empty() && own.is_none_or(|own| groups == 0 || groups + own > MOST_GROUPS) {
                break;
            }
            groups += own.unwrap_or(0);
            waiting.extend(self.gathered.pop_front());
        }
        let command = Command::of(waiting.iter().map(|waiting| &waiting.ask));
        Flight { command, with_source: false, sent: Instant::now(), waiting }
    }

    /// A reply to the flight that went out first.
    fn land(&mut self, link: &mut Link, reply: Reply) -> std::result::Result<(), Lost> {
        let Some(mut flight) = self.flights.pop_front() else {
            return Err(Lost::Malformed("an answer to nothing that was asked".into()));
        };
        let desk = &self.store.desk;
        if let Reply::Error(text) = &reply {
            if error::code(text) == "NOSCRIPT" && !flight.with_source {
                // Nothing was executed, so that sending it again with the source charges once.
                flight.with_source = true;
                let command = flight.command.args(true);
                if flight.waiting.iter().all(|it| it.asker.is_none()) {
                    return Ok(());
                }
                flight.sent = Instant::now();
                self.flights.push_back(flight);
                self.writes = !link.push(Some(&command))?;
                return Ok(());
            }
            desk.answered(&reply);
            let error = desk.error(text);
            self.fail(flight.waiting, &error);
            // A new connection may be to another server, or as one who may ask.
            return if error::is_elsewhere(text) { Err(Lost::Refused(text.clone())) } else { Ok(()) };
        }
        desk.answered(&reply);
        let parts = part(reply, flight.waiting.iter().map(|waiting| &waiting.ask)).unwrap_or_default();
        let missing = std::iter::repeat(Reply::Other);
        for (waiting, reply) in flight.waiting.into_iter().zip(parts.into_iter().chain(missing)) {
            let concluded = self.store.conclude(&waiting.prepared, &reply);
            let Some(asker) = waiting.asker else { continue };
            match concluded {
                Err(there) if !waiting.asked_again => {
                    // Nothing was done; with the windows around its own time the server is asked once more.
                    let Waiting { prepared, deadline, .. } = waiting;
                    let (ask, prepared) = self.store.prepare(prepared, there);
                    let asker = Some(asker);
                    self.gathered.push_front(Waiting { ask, prepared, asker, deadline, asked_again: true });
                }
                Err(_) => self.answered.push((asker, Err(self.store.unknown_answer()))),
                Ok(outcome) => self.answered.push((asker, outcome)),
            }
        }
        Ok(())
    }

    /// The connection is lost: what is on its way may have been charged, and is never sent again.
    fn lose(&mut self, lost: &Lost) {
        self.parting = self.link.take().or(self.parting.take());
        self.writes = false;
        let error = lost.error(self.store.settings(), true);
        self.store.desk.lost(&error);
        for flight in std::mem::take(&mut self.flights) {
            self.fail(flight.waiting, &error);
        }
    }

    fn fail(&mut self, waiting: impl IntoIterator<Item = Waiting<T>>, error: &Error) {
        let askers = waiting.into_iter().filter_map(|it| it.asker);
        self.answered.extend(askers.map(|asker| (asker, Err(error.clone()))));
    }

    fn give_up_late(&mut self) {
        let now = Instant::now();
        let sent = self.flights.iter_mut().flat_map(|flight| &mut flight.waiting);
        let late: Vec<T> = sent.filter(|it| it.is_late(now)).filter_map(|it| it.asker.take()).collect();
        // They came in the order of their deadlines.
        let unsent: Vec<Waiting<T>> =
            std::iter::from_fn(|| self.gathered.pop_front_if(|it| it.is_late(now))).collect();
        if late.is_empty() && unsent.is_empty() {
            return;
        }
        let failed = |sent| Lost::Late.error(self.store.settings(), sent);
        let (doubtful, unasked) = (failed(true), failed(false));
        let lost = if late.is_empty() { &unasked } else { &doubtful };
        if self.is_mute(now) {
            self.lose(&Lost::Late);
        } else {
            // The answers still come in their order, and nobody is told.
            self.store.desk.lost(lost);
        }
        self.answered.extend(late.into_iter().map(|asker| (asker, Err(doubtful.clone()))));
        self.fail(unsent, &unasked);
    }

    /// Whether nothing has been heard of the server for the time of a deadline, though it was asked.
    fn is_mute(&self, now: Instant) -> bool {
        let timeout = self.store.settings().timeout;
        let is_long = |since: Instant| now.saturating_duration_since(since) + SLACK >= timeout;
        let (Some(link), Some(first)) = (&self.link, self.flights.front()) else { return false };
        is_long(first.sent) && is_long(link.last_used())
    }

    /// In a child made by fork the connection is the parent's: it is dropped without a word, and so are
    /// the requests, whose loop the child does not run.
    fn leave_to_parent(&mut self) {
        let generation = fork::generation();
        if self.generation != generation {
            let fresh = Self::new(&self.store);
            if let Ok(fresh) = fresh {
                *self = fresh;
            }
            self.generation = generation;
        }
    }
}
