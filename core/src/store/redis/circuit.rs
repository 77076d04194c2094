//! The circuit: after a few failures nobody waits for the server any more, until a probe finds it well.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use crate::{Error, ErrorKind};

/// How many failures one after the other open it.
const FAILURES: u32 = 3;

/// How long after a failure the next probe goes out: at first, and at most; up to a quarter more, so that
/// processes that lost the server at the same time don't all come back at the same time.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// How much news is kept for one who never takes it; then the oldest goes.
const MOST_NEWS: usize = 16;

/// What a circuit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The server decides.
    Closed,
    /// Nobody asks the server but a probe, from this time on.
    Open { probe_at: Instant },
    /// A probe has found the server; one caller tries it.
    Trial { taken: bool },
}

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    Ask,
    /// Don't; the server is away. `probe`: it is time that someone looks for it.
    Refused {
        probe: bool,
    },
}

#[derive(Debug)]
pub(super) struct Circuit {
    state: State,
    failures: u32,
    delay: Duration,
    /// What failed last.
    pub reason: Option<Error>,
    /// How often it opened.
    pub opened: u64,
    since: Option<Instant>,
    /// What an operator should know: each change of state, once.
    news: VecDeque<String>,
}

impl Circuit {
    pub const fn new() -> Self {
        Self {
            state: State::Closed,
            failures: 0,
            delay: FIRST_DELAY,
            reason: None,
            opened: 0,
            since: None,
            news: VecDeque::new(),
        }
    }

    /// Its state in a word.
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Closed => "closed",
            State::Open { .. } => "open",
            State::Trial { .. } => "trial",
        }
    }

    pub fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// The oldest of it, which is then told.
    pub fn next_news(&mut self) -> Option<String> {
        self.news.pop_front()
    }

    fn announce(&mut self, text: String) {
        if self.news.len() == MOST_NEWS {
            self.news.pop_front();
        }
        self.news.push_back(text);
    }

    pub fn ask(&mut self, now: Instant) -> Leave {
        match self.state {
            State::Closed => Leave::Ask,
            State::Trial { taken: false } => {
                self.state = State::Trial { taken: true };
                Leave::Ask
            }
            State::Trial { taken: true } => Leave::Refused { probe: false },
            State::Open { probe_at } if now < probe_at => Leave::Refused { probe: false },
            State::Open { .. } => {
                // Only one caller is sent to look.
                self.state = State::Open { probe_at: now + LONGEST_DELAY };
                Leave::Refused { probe: true }
            }
        }
    }

    /// The error of one who may not ask.
    pub fn refusal(&self) -> Error {
        let kind = self.reason.as_ref().map_or(ErrorKind::StoreUnavailable, Error::kind);
        let text = self.reason.as_ref().map_or_else(String::new, Error::to_string);
        Error::new(kind, format!("not asked for a while after failures, the last: {text}"))
    }

    /// When the next probe is due; none while the server decides.
    pub fn probe_at(&self) -> Option<Instant> {
        match self.state {
            State::Open { probe_at } => Some(probe_at),
            _ => None,
        }
    }

    /// The server has answered as it should.
    pub fn succeeded(&mut self) {
        if self.state != State::Closed {
            let away = self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
            self.announce(format!("decides again, after {:.1} s", away.as_secs_f64()));
        }
        (self.state, self.failures, self.delay) = (State::Closed, 0, FIRST_DELAY);
    }

    /// A probe has found the server, which is not yet to say that it decides.
    pub fn found(&mut self) {
        if let State::Open { .. } = self.state {
            self.state = State::Trial { taken: false };
        }
    }

    /// The caller that tried it gave up before it was answered.
    pub fn given_up(&mut self) {
        if let State::Trial { taken } = &mut self.state {
            *taken = false;
        }
    }

    /// What was asked failed. While it is open that is one who had asked before, and says nothing new.
    pub fn failed(&mut self, now: Instant, reason: Error) {
        self.reason = Some(reason);
        self.failures = self.failures.saturating_add(1);
        match self.state {
            State::Closed if self.failures < FAILURES => {}
            State::Closed => {
                self.opened += 1;
                self.since = Some(now);
                let reason = self.reason.as_ref().map_or_else(String::new, Error::to_string);
                self.announce(format!("is not asked any more until it answers again: {reason}"));
                self.open(now);
            }
            State::Trial { .. } => self.open(now),
            State::Open { .. } => {}
        }
    }

    /// A probe, or whoever connects, has not found the server.
    pub fn not_found(&mut self, now: Instant, reason: Error) {
        let is_open = matches!(self.state, State::Open { .. });
        self.failed(now, reason);
        if is_open {
            self.open(now);
        }
    }

    fn open(&mut self, now: Instant) {
        let random = RandomState::new().build_hasher().finish() as u32;
        let more = (self.delay / 4).mul_f64(f64::from(random) / f64::from(u32::MAX));
        self.state = State::Open { probe_at: now + self.delay + more };
        self.delay = (self.delay * 2).min(LONGEST_DELAY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn late() -> Error {
        Error::new(ErrorKind::StoreTimeout, "late")
    }

    #[test]
    fn each_change_is_told_once() {
        let (mut circuit, now) = (Circuit::new(), Instant::now());
        (0..9).for_each(|_| circuit.failed(now, late()));
        let away = "is not asked any more until it answers again: late";
        assert_eq!((circuit.next_news().as_deref(), circuit.next_news()), (Some(away), None));
        circuit.found();
        assert!(!circuit.has_news());
        circuit.succeeded();
        circuit.succeeded();
        assert!(circuit.next_news().is_some_and(|text| text.starts_with("decides again")));
        assert_eq!(circuit.next_news(), None);
    }

    #[test]
    fn news_that_nobody_takes_does_not_pile_up() {
        let (mut circuit, now) = (Circuit::new(), Instant::now());
        for outage in 0..100 {
            let reason = || Error::new(ErrorKind::StoreTimeout, format!("outage {outage}"));
            (0..3).for_each(|_| circuit.failed(now, reason()));
            circuit.succeeded();
        }
        let told: Vec<String> = std::iter::from_fn(|| circuit.next_news()).collect();
        assert_eq!(told.len(), MOST_NEWS);
        assert!(told[MOST_NEWS - 2].ends_with("outage 99"), "{told:?}");
    }

    #[test]
    fn it_opens_after_three_failures_and_closes_by_one_that_tries() {
        let (mut circuit, begun) = (Circuit::new(), Instant::now());
        for _ in 0..2 {
            circuit.failed(begun, late());
            assert_eq!(circuit.ask(begun), Leave::Ask);
        }
        circuit.failed(begun, late());
        assert_eq!(circuit.ask(begun + 49 * MS), Leave::Refused { probe: false });
        assert_eq!(circuit.ask(begun + 63 * MS), Leave::Refused { probe: true });
        assert_eq!(circuit.ask(begun + 63 * MS), Leave::Refused { probe: false });
        circuit.found();
        assert_eq!(circuit.ask(begun + 70 * MS), Leave::Ask);
        assert_eq!(circuit.ask(begun + 70 * MS), Leave::Refused { probe: false });
        circuit.succeeded();
        assert_eq!((circuit.ask(begun + 70 * MS), circuit.opened), (Leave::Ask, 1));
        circuit.failed(begun, late());
        assert_eq!(circuit.ask(begun), Leave::Ask);
    }

    #[test]
    fn probes_become_rarer_and_an_outage_counts_once() {
        let (mut circuit, mut now) = (Circuit::new(), Instant::now());
        // The last of these had asked before it opened.
        (0..9).for_each(|_| circuit.failed(now, late()));
        for delay in [50, 100, 200, 400, 800, 1_000, 1_000] {
            let next = circuit.probe_at().unwrap();
            let latest = now + delay * MS + delay * MS / 4;
            assert!((now + delay * MS..=latest).contains(&next), "{delay} ms: {:?}", next - now);
            now = next;
            assert_eq!(circuit.ask(now), Leave::Refused { probe: true });
            circuit.not_found(now, late());
        }
        circuit.found();
        assert_eq!(circuit.ask(now), Leave::Ask);
        circuit.given_up();
        assert_eq!(circuit.ask(now), Leave::Ask);
        circuit.failed(now, late());
        assert_eq!((circuit.ask(now), circuit.opened), (Leave::Refused { probe: false }, 1));
    }
}
