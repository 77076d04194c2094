//! The circuit: after a few failures nobody waits for the server any more, until a probe finds it well.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use crate::{Error, ErrorKind, News};

/// How many failures one after the other open it.
const FAILURES: u32 = 5;

/// How long after a failure the next probe goes out; up to a quarter more, so that processes that lost the
/// server at the same time don't all come back at the same time.
const DELAY: Duration = Duration::from_millis(250);

/// How long a probe is waited for before another may be sent.
const LONGEST_PROBE: Duration = Duration::from_secs(1);

/// A server that fails again so soon has not been well in between, and an operator is told that once.
const WELL: Duration = Duration::from_secs(10);

/// So many failures within that time, though others are decided between them, are told as well.
const STRAY: u32 = 20;

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
    /// What failed last, and when.
    pub reason: Option<(Error, Instant)>,
    /// The error of those who are not let through meanwhile: made once, since they are many.
    refusal: Option<Error>,
    /// How often it opened.
    pub opened: u64,
    since: Option<Instant>,
    /// Since when it is closed again, or has not failed, and whether an operator knows that it comes and goes.
    closed: Option<Instant>,
    comes_and_goes: bool,
    /// Failures that opened nothing, and since when they are counted.
    stray: (u32, Option<Instant>),
    /// Whether an operator was told of a value that is not ours.
    told_corrupt: bool,
    /// What an operator should know: each change of state, once.
    news: VecDeque<News>,
}

impl Circuit {
    pub const fn new() -> Self {
        Self {
            state: State::Closed,
            failures: 0,
            reason: None,
            refusal: None,
            opened: 0,
            since: None,
            closed: None,
            comes_and_goes: false,
            stray: (0, None),
            told_corrupt: false,
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
    pub fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    fn announce(&mut self, is_error: bool, text: String) {
        if self.news.len() == MOST_NEWS {
            self.news.pop_front();
        }
        self.news.push_back(News { text, is_error });
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
                self.state = State::Open { probe_at: now + LONGEST_PROBE };
                Leave::Refused { probe: true }
            }
        }
    }

    /// The error of one who may not ask.
    pub fn refusal(&self) -> Error {
        self.refusal
            .clone()
            .unwrap_or_else(|| Error::new(ErrorKind::StoreUnavailable, "not asked for a while"))
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
        self.failures = 0;
        if self.state != State::Closed {
            (self.state, self.closed) = (State::Closed, Some(Instant::now()));
            if !self.comes_and_goes {
                self.announce_return();
            }
        } else if self.comes_and_goes && self.closed.is_none_or(|closed| closed.elapsed() >= WELL) {
            self.comes_and_goes = false;
            self.announce_return();
        }
    }

    fn announce_return(&mut self) {
        let until = self.closed.unwrap_or_else(Instant::now);
        let away = self.since.take().map_or(Duration::ZERO, |since| until.saturating_duration_since(since));
        self.announce(false, format!("decides again; it was away for {:.1} s", away.as_secs_f64()));
    }

    /// A failure that opens nothing is told when it is one of many.
    fn failed_now_and_then(&mut self, now: Instant) {
        let (count, since) = self.stray;
        let is_new = since.is_none_or(|since| now.saturating_duration_since(since) >= WELL);
        self.stray = if is_new { (1, Some(now)) } else { (count + 1, since) };
        if self.comes_and_goes {
            self.closed = Some(now);
        } else if self.stray.0 >= STRAY {
            (self.closed, self.since) = (Some(now), since);
            self.announce_flapping();
        }
    }

    fn announce_flapping(&mut self) {
        self.comes_and_goes = true;
        let (well, reason) = (WELL.as_secs(), self.reason_text());
        let text = format!("comes and goes; the next word is when it has decided for {well} s: {reason}");
        self.announce(true, text);
    }

    fn reason_text(&self) -> String {
        self.reason.as_ref().map_or_else(String::new, |(reason, _)| reason.to_string())
    }

    /// A key holds a value that is not ours, which opens nothing and is told the first time.
    pub fn found_corrupt(&mut self, reason: Error) {
        if !std::mem::replace(&mut self.told_corrupt, true) {
            self.announce(true, format!("holds what is not this library's: {reason}"));
        }
        self.reason = Some((reason, Instant::now()));
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
        let text = format!("not asked for a while after failures, the last: {reason}");
        self.refusal = Some(Error::new(reason.kind(), text));
        self.reason = Some((reason, now));
        self.failures = self.failures.saturating_add(1);
        match self.state {
            State::Closed if self.failures < FAILURES => self.failed_now_and_then(now),
            State::Closed => {
                self.opened += 1;
                self.announce_outage(now);
                self.open(now);
            }
            State::Trial { .. } => self.open(now),
            State::Open { .. } => {}
        }
    }

    fn announce_outage(&mut self, now: Instant) {
        let is_soon = self.closed.is_some_and(|closed| now.saturating_duration_since(closed) < WELL);
        match (is_soon, self.comes_and_goes) {
            (true, true) => {}
            (true, false) => self.announce_flapping(),
            (false, _) => {
                self.comes_and_goes = false;
                let reason = self.reason_text();
                self.announce(true, format!("is not asked any more until it answers again: {reason}"));
            }
        }
        self.since.get_or_insert(now);
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
        let more = (DELAY / 4).mul_f64(f64::from(random) / f64::from(u32::MAX));
        self.state = State::Open { probe_at: now + DELAY + more };
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
        let news = News { text: away.to_owned(), is_error: true };
        assert_eq!((circuit.next_news(), circuit.next_news()), (Some(news), None));
        circuit.found();
        assert!(!circuit.has_news());
        circuit.succeeded();
        circuit.succeeded();
        assert!(circuit.next_news().is_some_and(|it| !it.is_error && it.text.starts_with("decides again")));
        assert_eq!(circuit.next_news(), None);
    }

    #[test]
    fn what_fails_now_and_then_is_told_too() {
        let (mut circuit, now) = (Circuit::new(), Instant::now());
        let fail = |circuit: &mut Circuit, after: Duration| {
            circuit.failed(now + after, late());
            circuit.succeeded();
        };
        (0..40).for_each(|round| fail(&mut circuit, round * WELL / 10));
        assert!(!circuit.has_news(), "one a second is told to nobody");
        (0..40).for_each(|round| fail(&mut circuit, 100 * WELL + round * MS));
        assert!(circuit.next_news().is_some_and(|it| it.is_error && it.text.starts_with("comes and goes")));
        assert!(!circuit.has_news() && circuit.state == State::Closed);
        circuit.closed = Instant::now().checked_sub(WELL);
        circuit.succeeded();
        assert!(circuit.next_news().is_some_and(|it| it.text.starts_with("decides again")));
    }

    #[test]
    fn news_that_nobody_takes_does_not_pile_up() {
        let (mut circuit, now) = (Circuit::new(), Instant::now());
        for outage in 0..100 {
            let reason = || Error::new(ErrorKind::StoreTimeout, format!("outage {outage}"));
            let now = now + outage * 2 * WELL;
            (0..5).for_each(|_| circuit.failed(now, reason()));
            circuit.succeeded();
            circuit.closed = Some(now);
        }
        let told: Vec<String> = std::iter::from_fn(|| circuit.next_news().map(|news| news.text)).collect();
        assert_eq!(told.len(), MOST_NEWS);
        assert!(told[MOST_NEWS - 2].ends_with("outage 99"), "{told:?}");
    }

    #[test]
    fn a_server_that_comes_and_goes_is_told_once() {
        let (mut circuit, now) = (Circuit::new(), Instant::now());
        let fail = |circuit: &mut Circuit| (0..5).for_each(|_| circuit.failed(Instant::now(), late()));
        for _ in 0..20 {
            fail(&mut circuit);
            circuit.found();
            circuit.succeeded();
        }
        let told: Vec<String> = std::iter::from_fn(|| circuit.next_news().map(|news| news.text)).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[2].starts_with("comes and goes"), "{told:?}");
        assert_eq!(circuit.opened, 20);
        circuit.succeeded();
        assert!(!circuit.has_news());
        circuit.closed = now.checked_sub(WELL);
        circuit.succeeded();
        assert!(circuit.next_news().is_some_and(|it| !it.is_error && it.text.starts_with("decides again")));
    }

    #[test]
    fn it_opens_after_five_failures_and_closes_by_one_that_tries() {
        let (mut circuit, begun) = (Circuit::new(), Instant::now());
        for _ in 0..4 {
            circuit.failed(begun, late());
            assert_eq!(circuit.ask(begun), Leave::Ask);
        }
        circuit.failed(begun, late());
        assert_eq!(circuit.ask(begun + 249 * MS), Leave::Refused { probe: false });
        assert_eq!(circuit.ask(begun + 313 * MS), Leave::Refused { probe: true });
        assert_eq!(circuit.ask(begun + 313 * MS), Leave::Refused { probe: false });
        circuit.found();
        assert_eq!(circuit.ask(begun + 320 * MS), Leave::Ask);
        assert_eq!(circuit.ask(begun + 320 * MS), Leave::Refused { probe: false });
        circuit.succeeded();
        assert_eq!((circuit.ask(begun + 320 * MS), circuit.opened), (Leave::Ask, 1));
        circuit.failed(begun, late());
        assert_eq!(circuit.ask(begun), Leave::Ask);
    }

    #[test]
    fn probes_go_out_steadily_and_an_outage_counts_once() {
        let (mut circuit, mut now) = (Circuit::new(), Instant::now());
        // The last of these had asked before it opened.
        (0..9).for_each(|_| circuit.failed(now, late()));
        for _ in 0..7 {
            let next = circuit.probe_at().unwrap();
            assert!((now + DELAY..=now + DELAY + DELAY / 4).contains(&next), "{:?}", next - now);
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
