//! `redis:`, the store that processes and machines share: one script, one call a decision, by the
//! server's clock.

mod address;
mod batch;
mod circuit;
mod connecting;
mod desk;
pub(crate) mod driver;
mod error;
mod file;
mod key;
mod link;
mod queue;
mod script;
mod socket;
#[cfg(feature = "tls")]
mod tls;
mod uri;
mod wire;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use smallvec::SmallVec;

use super::charge::{Charge, Group, Mode, Outcome, Outcomes, Request};
use super::memory::MemoryStore;
use super::refusals::Refusals;
use super::{Given, Refund, StandIn};
use crate::clock::{self, Time};
use crate::fork::{self, Held, Lockable};
use crate::health::Health;
use crate::named::Named;
use crate::policy::Policy;
use crate::receipt::Lease;
use crate::{Error, ErrorKind, News, Result};
use batch::{Ask, Decide, MOST_GROUPS};
use desk::Desk;
use script::{Answer, Call, Program, stored};
use uri::Settings;
use wire::{Args, Reply};

pub(crate) struct RedisStore {
    desk: Arc<Desk>,
    refusals: Refusals,
    /// How far the server's clock is ahead of this process's, in microseconds.
    ahead_us: AtomicI64,
    /// What decides in this process while the server does not: by its time, and by given times. There from
    /// the first, like all that has locks: what is begun during a fork is never finished in the child.
    stand_ins: [Arc<MemoryStore>; 2],
}

/// How many buckets are kept for the time when the server does not decide: two for a key and limit, see
/// `limiter::instead`.
const STAND_IN_KEYS: usize = 200_000;

/// A request that is answered later, and when it was sent.
struct Prepared {
    policy: Policy,
    key: Box<[u8]>,
    cost: u64,
    mode: Mode,
    time: Time,
    lease: Lease,
    sent: u64,
}

impl Prepared {
    fn new(policy: &Policy, request: &Request<'_>, mode: Mode, time: Time) -> Self {
        let charges: SmallVec<[Charge<'_>; 4]> = request.charges().collect();
        Self {
            policy: policy.clone(),
            key: request.key.into(),
            cost: request.cost,
            mode,
            time,
            lease: super::charge::lease(&charges, mode),
            sent: local_us(),
        }
    }
}

type Keys = SmallVec<[String; 3]>;

/// Opens the store behind a URI; equal URIs share one in a process.
pub(super) fn open(uri: &str) -> Result<Arc<RedisStore>> {
    static OPEN: Named<Weak<RedisStore>> = Named::new();
    OPEN.with(|open| {
        if let Some(store) = open.get(uri).and_then(Weak::upgrade) {
            return Ok(store);
        }
        let store = Arc::new(RedisStore {
            desk: Desk::new(Settings::parse(uri)?),
            refusals: Refusals::default(),
            ahead_us: AtomicI64::new(0),
            stand_ins: [(), ()].map(|()| MemoryStore::bounded(STAND_IN_KEYS)),
        });
        fork::watch(&store);
        open.retain(|_, store| store.strong_count() > 0);
        open.insert(uri.into(), Arc::downgrade(&store));
        Ok(store)
    })
}

impl RedisStore {
    /// Decides a request; where it was refused a moment ago and would be again, without the server.
    pub fn decide_request(&self, request: &Request<'_>, mode: Mode, time: Time) -> Result<Outcome> {
        if let Some(outcome) = self.recall(request, mode, time) {
            return Ok(outcome);
        }
        let sent = local_us();
        let group = Group { charges: request.charges().collect() };
        let missing = || Error::new(ErrorKind::Internal, "the store gave no answer");
        let outcome = self.decide(&[group], mode, time)?.pop().ok_or_else(missing)??;
        self.remember(request, mode, time, &outcome, sent);
        Ok(outcome)
    }

    /// The refusal of this request, where it was given a moment ago and still holds.
    fn recall(&self, request: &Request<'_>, mode: Mode, time: Time) -> Option<Outcome> {
        let may = mode == Mode::Acquire && request.cost > 0 && time.given().is_none();
        if may { self.refusals.recall(request, local_us) } else { None }
    }

    fn remember(&self, request: &Request<'_>, mode: Mode, time: Time, outcome: &Outcome, sent: u64) {
        if mode == Mode::Acquire && request.cost > 0 && time.given().is_none() {
            if outcome.admitted {
                self.refusals.end(request);
            } else {
                self.refusals.remember(request, outcome, sent, local_us());
            }
        }
    }

    /// What decides in the server's place while it does not.
    pub fn stand_in(&self, time: Time) -> StandIn<'_> {
        let memory = &self.stand_ins[usize::from(time.given().is_some())];
        let there = local_us().saturating_add_signed(self.ahead_us.load(Ordering::Relaxed));
        let time = if time.given().is_some() { time } else { Time::near_us(there) };
        StandIn { memory, time }
    }

    /// How long until it may be known whether the server decides, in microseconds.
    pub fn known_after_us(&self) -> u64 {
        self.desk.known_after().as_micros() as u64
    }

    pub fn decide(&self, groups: &[Group<'_>], mode: Mode, time: Time) -> Result<Outcomes> {
        let mut outcomes = Outcomes::new();
        // One deadline, into however many calls it is parted.
        let groups_in_all = groups.len();
        let is_parted = groups_in_all > MOST_GROUPS;
        let deadline = is_parted.then(|| Instant::now() + self.desk.patience_now());
        for groups in groups.chunks(MOST_GROUPS) {
            let near = clock::resolve(time).wall;
            match self.decide_near(groups, mode, time, near, deadline) {
                Ok(decided) => outcomes.extend(decided),
                Err(error) if outcomes.is_empty() => return Err(error),
                // What was decided stays so; the rest is not asked any more.
                Err(error) => {
                    let missing = groups_in_all - outcomes.len();
                    outcomes.extend(std::iter::repeat_n(Err(error), missing));
                    break;
                }
            }
        }
        Ok(outcomes)
    }

    /// Decides as one that believes the time to be about `near`.
    fn decide_near(
        &self,
        groups: &[Group<'_>],
        mode: Mode,
        time: Time,
        near: u64,
        deadline: Option<Instant>,
    ) -> Result<Outcomes> {
        let begun = Instant::now();
        let answers = self.call(groups, mode, time, near, deadline)?;
        // It may be over already where the first connection was waited for.
        let left = || Some(begun + self.settings().timeout).filter(|&until| until > Instant::now());
        let again = |(group, answer)| match answer {
            Answer::Decided(outcome) => Ok(outcome),
            Answer::Corrupt(index) => Err(self.corrupt(self.keys(group, time).get(index))),
            // Nothing was done; with the windows around its own time the server is asked once more.
            Answer::Elsewhere(there) => {
                let deadline = deadline.or_else(left);
                match self.call(std::slice::from_ref(group), mode, time, there, deadline)?.pop() {
                    Some(Answer::Decided(outcome)) => Ok(outcome),
                    Some(Answer::Corrupt(index)) => Err(self.corrupt(self.keys(group, time).get(index))),
                    _ => Err(self.unknown_answer()),
                }
            }
        };
        Ok(groups.iter().zip(answers).map(again).collect())
    }

    /// Asks once, by the deadline: its own where none is given.
    fn call(
        &self,
        groups: &[Group<'_>],
        mode: Mode,
        time: Time,
        near: u64,
        deadline: Option<Instant>,
    ) -> Result<SmallVec<[Answer; 1]>> {
        let leases: SmallVec<[Lease; 1]> =
            groups.iter().map(|group| super::charge::lease(&group.charges, mode)).collect();
        let reply = self.ask_by(self.deciding(groups, &leases, mode, time, near), deadline)?;
        self.answers(&reply, groups, &leases, time).ok_or_else(|| self.unknown_answer())
    }

    fn deciding(&self, groups: &[Group<'_>], leases: &[Lease], mode: Mode, time: Time, near: u64) -> Ask {
        let mut arguments = Args::default();
        Call { groups, leases, mode, near }.arguments(&mut arguments);
        Ask::Decide(Decide {
            parts: script::parts(groups),
            keys: packed(groups.iter().flat_map(|group| self.keys(group, time))),
            arguments,
            time,
            told: script::told(groups),
        })
    }

    fn answers(
        &self,
        reply: &Reply,
        groups: &[Group<'_>],
        leases: &[Lease],
        time: Time,
    ) -> Option<SmallVec<[Answer; 1]>> {
        if let (Reply::Integers(numbers), None) = (reply, time.given())
            && let Some(&there) = numbers.first()
        {
            self.ahead_us.store(there.saturating_sub_unsigned(local_us()), Ordering::Relaxed);
        }
        script::answers(reply, groups, leases)
    }

    /// What to send for a request that is answered later, and what its answer is read with. `near` is
    /// about what time it is there.
    fn prepare(&self, prepared: Prepared, near: u64) -> (Ask, Prepared) {
        let Prepared { policy, key, cost, mode, time, lease, .. } = &prepared;
        let group = policy.group(key, *cost);
        let ask = self.deciding(&[group], &[*lease], *mode, *time, near);
        (ask, prepared)
    }

    /// The answer to it; the server's time where that fits none of the windows that were sent.
    fn conclude(&self, prepared: &Prepared, reply: &Reply) -> std::result::Result<Result<Outcome>, u64> {
        let Prepared { policy, key, cost, mode, time, lease, sent } = prepared;
        let groups = [policy.group(key, *cost)];
        let answer = self.answers(reply, &groups, &[*lease], *time).and_then(|mut answers| answers.pop());
        match answer {
            Some(Answer::Decided(outcome)) => {
                let request = Request { buckets: policy.buckets(), key, cost: *cost };
                self.remember(&request, *mode, *time, &outcome, *sent);
                Ok(Ok(outcome))
            }
            Some(Answer::Corrupt(index)) => Ok(Err(self.corrupt(self.keys(&groups[0], *time).get(index)))),
            Some(Answer::Elsewhere(there)) => Err(there),
            None => Ok(Err(self.unknown_answer())),
        }
    }

    /// Gives back what a receipt says; the units that each of the charges gave back.
    pub fn refund(&self, refund: &Refund<'_>, time: Time) -> Result<Given> {
        let given = self.give_back(refund, time);
        self.forget(refund.charges);
        given
    }

    fn give_back(&self, refund: &Refund<'_>, time: Time) -> Result<Given> {
        let stored = refund.charges.iter().filter(|charge| charge.bucket.algorithm().has_state());
        let charges: SmallVec<[Charge<'_>; 2]> = stored.copied().collect();
        if charges.is_empty() {
            return Ok(Given::new());
        }
        let refund = Refund { charges: &charges, ..*refund };
        let keys: Keys = charges.iter().map(|charge| self.key(charge, time)).collect();
        let near = clock::resolve(time).wall;
        let mut arguments = Args::default();
        script::refund_arguments(&mut arguments, &refund, time, near);
        let program = Program::refunding(&charges);
        let reply = self.ask(Ask::Script { program, keys: packed(keys.iter().cloned()), arguments })?;
        let given = script::given(&reply, &refund).ok_or_else(|| self.unknown_answer())?;
        given.map_err(|index| self.corrupt(keys.get(index)))
    }

    pub fn reset(&self, charges: &[Charge<'_>], time: Time) -> Result<()> {
        let group = Group { charges: charges.into() };
        let deleted = self.delete(self.keys(&group, time));
        self.forget(charges);
        deleted
    }

    pub fn block(&self, key: &[u8], for_us: u64, time: Time) -> Result<()> {
        self.refusals.forget(key, local_us());
        let mut arguments = Args::default();
        script::time_arguments(&mut arguments, time);
        arguments.arg(for_us);
        let keys = packed(std::iter::once(self.block_key(key, time)));
        self.insist(Ask::Script { program: Program::blocking(), keys, arguments }).map(|_| ())
    }

    pub fn unblock(&self, key: &[u8], time: Time) -> Result<()> {
        let deleted = self.delete(std::iter::once(self.block_key(key, time)));
        self.refusals.forget(key, local_us());
        deleted
    }

    fn delete(&self, keys: impl IntoIterator<Item = String>) -> Result<()> {
        let mut command = Args::default();
        command.arg("DEL").args(&packed(keys));
        self.insist(Ask::Plain(command)).map(|_| ())
    }

    /// What was refused to these keys may be admitted now.
    fn forget(&self, charges: &[Charge<'_>]) {
        charges.iter().for_each(|charge| self.refusals.forget(charge.key, local_us()));
    }

    fn settings(&self) -> &Settings {
        self.desk.settings()
    }

    /// How the server is, asked now.
    pub fn health(&self) -> Health {
        let mut health = Health::local(&self.settings().to_string());
        let sent = local_us();
        let asked = self.insist(Ask::Plain(wire::command(&[b"TIME"])));
        let received = local_us();
        if let Ok(Reply::Texts(time)) = &asked
            && let [seconds, us] = time.as_slice()
            && let (Ok(seconds), Ok(us)) = (seconds.parse::<i64>(), us.parse::<i64>())
        {
            let there = seconds.saturating_mul(1_000_000).saturating_add(us);
            health.clock_ahead_us = Some(there.saturating_sub_unsigned(sent.midpoint(received)));
        }
        // A server that is away is waited for once.
        let away = [ErrorKind::StoreTimeout, ErrorKind::StoreUnavailable];
        let is_away = matches!(&asked, Err(error) if away.contains(&error.kind()));
        let info = |section: &[u8]| {
            if is_away {
                return String::new();
            }
            match self.insist(Ask::Plain(wire::command(&[b"INFO", section]))) {
                Ok(Reply::Text(text)) => text,
                _ => String::new(),
            }
        };
        let (server, memory) = (info(b"server"), info(b"memory"));
        let of = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(|value| value.trim().to_owned())
        };
        health.server_version = of(&server, "valkey_version").or_else(|| of(&server, "redis_version"));
        health.maxmemory_policy = of(&memory, "maxmemory_policy");
        let is_bounded = of(&memory, "maxmemory").map(|bytes| bytes != "0");
        let drops = health.maxmemory_policy.as_ref().map(|policy| policy != "noeviction");
        health.may_drop_keys = is_bounded.zip(drops).map(|(is_bounded, drops)| is_bounded && drops);
        let (circuit, last, opened) = self.desk.circuit();
        health.ok = asked.is_ok() && circuit != "open";
        (health.circuit, health.opened) = (circuit, opened);
        health.last_error_age = last.as_ref().map(|(_, at)| at.elapsed());
        health.last_error = last.map(|(error, _)| (error.kind(), error.to_string()));
        health
    }

    /// The oldest of what an operator should know and was not told yet: that it is away, that it is back.
    pub fn next_news(&self) -> Option<News> {
        self.desk.next_news()
    }

    /// Where it is, and how its keys begin.
    pub fn identity(&self) -> String {
        format!("{} {}", self.settings(), self.settings().prefix)
    }

    /// The address, without credentials.
    pub fn shown(&self) -> impl fmt::Display {
        self.settings()
    }

    fn key(&self, charge: &Charge<'_>, time: Time) -> String {
        key::text(self.settings(), charge.key, charge.bucket.id(), time)
    }

    fn block_key(&self, key: &[u8], time: Time) -> String {
        key::text(self.settings(), key, "!", time)
    }

    /// A group's keys: the blocks of its keys, then one for each charge that is stored.
    fn keys(&self, group: &Group<'_>, time: Time) -> Keys {
        let blocks = group.keys().into_iter().map(|key| self.block_key(key, time));
        blocks.chain(stored(group).map(|charge| self.key(charge, time))).collect()
    }

    fn ask(&self, ask: Ask) -> Result<Reply> {
        self.ask_by(ask, None)
    }

    fn ask_by(&self, ask: Ask, deadline: Option<Instant>) -> Result<Reply> {
        self.no_error(self.desk.call(ask, deadline)?)
    }

    /// Asks also where the server is known to be away: for an operator, who must know.
    fn insist(&self, ask: Ask) -> Result<Reply> {
        self.no_error(self.desk.insist(ask)?)
    }

    fn no_error(&self, reply: Reply) -> Result<Reply> {
        match reply {
            Reply::Error(text) => Err(self.desk.error(&text)),
            reply => Ok(reply),
        }
    }

    fn corrupt(&self, key: Option<&String>) -> Error {
        let key = key.map_or("", String::as_str);
        let error = Error::new(
            ErrorKind::StoreCorrupt,
            format!(
                "the value under {key:?} on {} is not one that this library writes; it was left as it is",
                self.settings()
            ),
        );
        self.desk.found_corrupt(&error);
        error
    }

    fn unknown_answer(&self) -> Error {
        self.desk.unknown_shape()
    }
}

/// This process's own clock, which runs evenly.
fn local_us() -> u64 {
    clock::resolve(Time::STORE).steady
}

fn packed(keys: impl IntoIterator<Item = String>) -> Args {
    let mut args = Args::default();
    keys.into_iter().for_each(|key| {
        args.arg(key);
    });
    args
}

impl Lockable for RedisStore {
    fn lock_all(&self) -> Vec<Box<dyn Held + '_>> {
        let mut held = self.refusals.hold();
        held.push(self.desk.hold());
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private(name: &str) -> Arc<RedisStore> {
        let server = std::env::var("MIRAB_TEST_REDIS").expect("MIRAB_TEST_REDIS names a private Redis");
        open(&format!("{server}?timeout_ms=5000&prefix={name}-{}", std::process::id())).unwrap()
    }

    #[test]
    fn a_group_over_many_keys_is_all_or_nothing_and_groups_are_independent() {
        let store = private("group");
        let policy = Policy::parse("3/hour; fixed_window: 5/30 days").unwrap();
        let group = |keys: &[&'static [u8]], cost: u64| {
            let charges = keys.iter().flat_map(|&key| policy.group(key, cost).charges).collect();
            Group { charges }
        };
        let groups =
            [group(&[b"a", b"b"], 2), group(&[b"b", b"c"], 2), group(&[b"c"], 3), group(&[b"a", b"b"], 1)];
        let outcomes = store.decide(&groups, Mode::Acquire, Time::STORE).unwrap();
        let admitted: Vec<bool> = outcomes.iter().map(|it| it.as_ref().unwrap().admitted).collect();
        assert_eq!(admitted, [true, false, true, true]);
        let many: Vec<Group<'_>> = (0..150).map(|_| group(&[b"d"], 1)).collect();
        let outcomes = store.decide(&many, Mode::Acquire, Time::STORE).unwrap();
        let admitted = outcomes.iter().filter(|it| it.as_ref().unwrap().admitted);
        assert_eq!((outcomes.len(), admitted.count()), (150, 3));
    }

    #[test]
    #[cfg(feature = "calendar")]
    fn a_client_whose_clock_is_far_off_asks_once_more_and_charges_once() {
        let store = private("calendar");
        let policy = Policy::parse("fixed_window: 5/day in Africa/Cairo; 100/second").unwrap();
        let group = [policy.group(b"k", 2)];
        let now = clock::resolve(Time::STORE).wall;
        for (near, left) in [(0, 3), (now, 1), (1 << 52, 1)] {
            let outcome =
                store.decide_near(&group, Mode::Acquire, Time::STORE, near, None).unwrap().remove(0).unwrap();
            let measure = policy.limits()[0].algorithm().measure(&outcome.seen[0], outcome.now);
            assert_eq!((outcome.admitted, measure.remaining), (near <= now, left), "near {near}");
        }
        let elsewhere = store.call(&group, Mode::Acquire, Time::STORE, 0, None).unwrap();
        assert!(matches!(elsewhere[0], Answer::Elsewhere(there) if there.abs_diff(now) < 60_000_000));
    }
}
