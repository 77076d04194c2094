//! Who waits for the server, and the connections that there are.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, OnceLock};
use std::time::Instant;

use super::batch::{Ask, MOST_GROUPS};
use super::circuit::Circuit;
use super::connecting::First;
use super::link::{Link, Lost};
use super::uri::Settings;
use super::wire::Reply;
use crate::fork;
use crate::{Error, Result};

pub(super) struct Queue {
    /// Of which process the rest is.
    pub generation: u32,
    pub idle: Vec<Link>,
    /// How many connections are with those who lead.
    pub leading: usize,
    /// Descriptors of all connections, which a forked child closes.
    pub open: Vec<RawFd>,
    pub is_connecting: bool,
    /// From when on one more connection may be tried, after it could not be had.
    pub more_from: Option<Instant>,
    pub first: First,
    pub waiting: VecDeque<Arc<Caller>>,
    pub circuit: Circuit,
}

/// One who waits for his answer.
pub(super) struct Caller {
    pub ask: Ask,
    pub deadline: Instant,
    pub answer: OnceLock<Result<Reply>>,
    /// Notified when he is answered, or may lead.
    pub wake: Condvar,
}

impl Queue {
    pub fn new() -> Self {
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
    pub fn is_crowded(&self, pool: usize) -> bool {
        self.waiting.len() >= MOST_GROUPS
            && self.leading < pool
            && self.idle.is_empty()
            && self.more_from.is_none_or(|from| from <= Instant::now())
    }

    /// A connection for the next one who leads. A second round trip goes out beside the first only when
    /// more wait than one can take.
    pub fn link_to_lead(&mut self, pool: usize) -> Option<Link> {
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
    pub fn gather(&mut self) -> Vec<Arc<Caller>> {
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

    pub fn wake_next(&self, pool: usize) {
        if self.leading < pool
            && let Some(next) = self.waiting.front()
        {
            next.wake.notify_one();
        }
    }

    /// Whose deadline has passed: what he asked was not sent yet, or may have been charged.
    pub fn give_up(&mut self, caller: &Arc<Caller>, settings: &Settings) -> Error {
        let place = self.waiting.iter().position(|other| Arc::ptr_eq(other, caller));
        let was_sent = place.and_then(|place| self.waiting.remove(place)).is_none();
        self.circuit.given_up();
        let error = Lost::Late.error(settings, was_sent);
        if !was_sent {
            self.circuit.failed(Instant::now(), error.clone());
        }
        error
    }

    /// Nothing was sent for those who wait: they need not wait for their deadlines.
    pub fn fail_all(&mut self, error: &Error) {
        std::mem::take(&mut self.waiting).iter().for_each(|caller| caller.tell(Err(error.clone())));
    }

    pub fn forget(&mut self, fd: RawFd) {
        self.open.retain(|&open| open != fd);
    }

    pub fn forget_idle(&mut self) {
        for link in std::mem::take(&mut self.idle) {
            self.forget(link.raw_fd());
        }
    }

    /// In a child made by fork: the connections are its parent's, and not a word may be said on them.
    pub fn leave_to_parent(&mut self) {
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
    pub fn tell(&self, answer: Result<Reply>) {
        // He is told once: who has given up is not asked any more.
        let _ = self.answer.set(answer);
        self.wake.notify_one();
    }
}
