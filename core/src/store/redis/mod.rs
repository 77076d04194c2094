//! `redis:`, the store that processes and machines share: one script, one call a decision, by the
//! server's clock.

mod error;
mod key;
mod script;
mod transport;
mod uri;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, Weak};

use redis::{Cmd, Connection, ErrorKind as Kind, RedisError, ServerErrorKind, Value};
use smallvec::SmallVec;

use super::charge::{Charge, Group, Mode, Outcome, Outcomes};
use super::fork::{self, Held, Lockable};
use crate::clock::{self, Time};
use crate::receipt::Lease;
use crate::{Error, ErrorKind, Result};
use script::{Answer, Program, stored};
use transport::Transport;
use uri::Settings;

pub(crate) struct RedisStore {
    settings: Settings,
    transport: Transport,
}

/// The most groups of one call: more would keep the server from others for too long.
const MOST_GROUPS: usize = 64;

/// Opens the store behind a URI; equal URIs share one in a process.
pub(super) fn open(uri: &str) -> Result<Arc<RedisStore>> {
    static OPEN: LazyLock<Mutex<HashMap<Box<str>, Weak<RedisStore>>>> = LazyLock::new(Mutex::default);
    let mut open = fork::lock(&OPEN);
    if let Some(store) = open.get(uri).and_then(Weak::upgrade) {
        return Ok(store);
    }
    let settings = Settings::parse(uri)?;
    let transport =
        Transport::new(&settings).map_err(|error| Error::uri(format!("the store {settings}: {error}")))?;
    let store = Arc::new(RedisStore { settings, transport });
    fork::watch(&store);
    open.retain(|_, store| store.strong_count() > 0);
    open.insert(uri.into(), Arc::downgrade(&store));
    Ok(store)
}

impl RedisStore {
    pub fn decide(&self, groups: &[Group<'_>], mode: Mode, time: Time) -> Result<Outcomes> {
        let mut outcomes = Outcomes::new();
        for groups in groups.chunks(MOST_GROUPS) {
            outcomes.extend(self.decide_once(groups, mode, time)?);
        }
        Ok(outcomes)
    }

    fn decide_once(&self, groups: &[Group<'_>], mode: Mode, time: Time) -> Result<Outcomes> {
        let keys: SmallVec<[String; 2]> =
            groups.iter().flat_map(stored).map(|charge| self.key(charge, time)).collect();
        if keys.is_empty() {
            return Ok(groups.iter().map(|group| Ok(stateless(group, time))).collect());
        }
        let leases: SmallVec<[Lease; 1]> = groups.iter().map(|group| group.lease(mode)).collect();
        let value = self.run(Program::deciding(groups), &keys, |command| {
            script::arguments(command, groups, &leases, mode, time);
        })?;
        let answers = script::answers(&value, groups, &leases).ok_or_else(|| self.unknown_answer())?;
        let mut keys = &keys[..];
        let outcomes = groups.iter().zip(answers).map(|(group, answer)| {
            let (own, rest) = keys.split_at(stored(group).count());
            keys = rest;
            match answer {
                Answer::Decided(outcome) => Ok(outcome),
                Answer::Corrupt(index) => Err(self.corrupt(own.get(index).map_or("", String::as_str))),
            }
        });
        Ok(outcomes.collect())
    }

    /// Ends the leases of that identity; how many of them still counted.
    pub fn release(&self, charges: &[Charge<'_>], lease: Lease, time: Time) -> Result<u64> {
        let Some(first) = charges.first() else { return Ok(0) };
        let keys: SmallVec<[String; 2]> = charges.iter().map(|charge| self.key(charge, time)).collect();
        let value = self.run(Program::releasing(), &keys, |command| {
            match time.given() {
                Some(us) => command.arg(us),
                None => command.arg(-1),
            };
            command.arg(key::lease(lease, first.cost));
        })?;
        match value {
            Value::Int(ended) => Ok(ended.unsigned_abs()),
            _ => Err(self.unknown_answer()),
        }
    }

    pub fn reset(&self, charges: &[Charge<'_>], time: Time) -> Result<()> {
        let stored = charges.iter().filter(|charge| charge.bucket.algorithm().has_state());
        let keys: SmallVec<[String; 2]> = stored.map(|charge| self.key(charge, time)).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let mut command = redis::cmd("DEL");
        command.arg(&keys[..]);
        self.ask(|connection| command.query(connection)).map(|_| ())
    }

    /// The address, without credentials.
    pub fn shown(&self) -> impl fmt::Display {
        &self.settings
    }

    fn key(&self, charge: &Charge<'_>, time: Time) -> String {
        key::text(&self.settings.prefix, charge.key, charge.bucket.id(), time)
    }

    /// Runs a script, with its source where the server doesn't know it yet.
    fn run(&self, program: &Program, keys: &[String], arguments: impl Fn(&mut Cmd)) -> Result<Value> {
        let command = |name: &str, script: &str| {
            let mut command = redis::cmd(name);
            command.arg(script).arg(keys.len()).arg(keys);
            arguments(&mut command);
            command
        };
        self.ask(|connection| match command("EVALSHA", &program.digest).query(connection) {
            // Nothing was executed, so that sending it again with the source charges once.
            Err(error) if error.kind() == Kind::Server(ServerErrorKind::NoScript) => {
                command("EVAL", &program.source).query(connection)
            }
            answer => answer,
        })
    }

    fn ask(
        &self,
        exchange: impl FnOnce(&mut Connection) -> std::result::Result<Value, RedisError>,
    ) -> Result<Value> {
        self.transport.run(&self.settings, exchange).map_err(|error| self.error(&error))
    }

    fn corrupt(&self, key: &str) -> Error {
        Error::new(
            ErrorKind::StoreCorrupt,
            format!(
                "the value under {key:?} on {} is not one that this library writes; it was left as it is",
                self.settings
            ),
        )
    }

    fn unknown_answer(&self) -> Error {
        Error::new(ErrorKind::StoreCorrupt, format!("{} gave an answer of an unknown shape", self.settings))
    }

    fn error(&self, error: &RedisError) -> Error {
        let kind = error::kind(error);
        let text = match kind {
            ErrorKind::StoreTimeout => {
                format!("{} did not answer within the deadline; the charge may have happened", self.settings)
            }
            _ => format!("{}: {error}", self.settings),
        };
        Error::new(kind, text)
    }
}

impl Lockable for RedisStore {
    fn lock_all(&self) -> Vec<Box<dyn Held + '_>> {
        vec![self.transport.lock()]
    }
}

/// `deny` and `unlimited` need nobody's answer.
fn stateless(group: &Group<'_>, time: Time) -> Outcome {
    let now = clock::resolve(time, false);
    let seen = group.charges.iter().map(|charge| charge.bucket.algorithm().nothing(now)).collect();
    Outcome { admitted: !group.never_admitted(), now, seen, lease: Lease::default() }
}
