//! `redis:`, the store that processes and machines share: one script, one call a decision, by the
//! server's clock.

mod key;
mod script;
mod transport;
mod uri;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, Weak};

use redis::{Cmd, Connection, ErrorKind as Kind, RedisError, ServerErrorKind, Value};
use smallvec::SmallVec;

use super::fork::{self, Held, Lockable};
use super::{Outcome, Request};
use crate::algorithm::State;
use crate::clock::{self, Now, Time};
use crate::policy::Policy;
use crate::{Error, ErrorKind, Result};
use script::{Answer, Order};
use transport::Transport;
use uri::Settings;

pub(crate) struct RedisStore {
    settings: Settings,
    transport: Transport,
}

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
    pub fn decide(&self, request: &Request<'_>) -> Result<Outcome> {
        let policy = request.policy;
        let order = Order::of(request);
        let keys = self.keys(policy, request.key, request.time);
        if keys.is_empty() {
            return Ok(stateless(request));
        }
        let mut command = redis::cmd("EVALSHA");
        command.arg(&**SCRIPT_DIGEST);
        question(&mut command, &keys, request, order);
        let value = self.ask(|connection| match command.query(connection) {
            // Nothing was executed, so that sending it again with the source charges once.
            Err(error) if error.kind() == Kind::Server(ServerErrorKind::NoScript) => {
                let mut whole = redis::cmd("EVAL");
                whole.arg(script::SOURCE);
                question(&mut whole, &keys, request, order);
                whole.query(connection)
            }
            answer => answer,
        })?;
        match script::answer(&value, request) {
            Some(Answer::Decided { admitted, now, states }) => {
                let now = Now { steady: now, wall: now };
                // A question carries no cost: what it would do follows from the states.
                let mut asked = policy.limits().iter().zip(&states);
                let admitted = match order {
                    Order::Ask => {
                        asked.all(|(limit, state)| limit.algorithm().admits(state, now, request.cost))
                    }
                    Order::Take | Order::Refuse => admitted,
                };
                Ok(Outcome { admitted, now, states })
            }
            Some(Answer::Corrupt(index)) => Err(Error::new(
                ErrorKind::StoreCorrupt,
                format!(
                    "the value under {:?} on {} is not one that this library writes; it was left as it is",
                    keys.get(index).map_or("", String::as_str),
                    self.settings
                ),
            )),
            None => Err(Error::new(
                ErrorKind::StoreCorrupt,
                format!("{} gave an answer of an unknown shape", self.settings),
            )),
        }
    }

    pub fn reset(&self, policy: &Policy, key: &[u8], time: Time) -> Result<()> {
        let keys = self.keys(policy, key, time);
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

    /// The keys of the limits that store anything, in the order of the policy.
    fn keys(&self, policy: &Policy, key: &[u8], time: Time) -> SmallVec<[String; 2]> {
        let tagged = key::tagged(&self.settings.prefix, key, time);
        let limits = policy.limits().iter().zip(policy.buckets());
        limits
            .filter(|(limit, _)| limit.algorithm().has_state())
            .map(|(_, bucket)| [&tagged, bucket.id()].concat())
            .collect()
    }

    fn ask(
        &self,
        exchange: impl FnOnce(&mut Connection) -> std::result::Result<Value, RedisError>,
    ) -> Result<Value> {
        self.transport.run(&self.settings, exchange).map_err(|error| self.error(&error))
    }

    fn error(&self, error: &RedisError) -> Error {
        let kind = match error.kind() {
            _ if error.is_timeout() => ErrorKind::StoreTimeout,
            Kind::AuthenticationFailed | Kind::Server(ServerErrorKind::NoPerm) => ErrorKind::StoreDenied,
            Kind::Io | Kind::Server(_) | Kind::ClusterConnectionNotFound => ErrorKind::StoreUnavailable,
            _ => match error.code() {
                Some("NOAUTH" | "WRONGPASS" | "NOPERM") => ErrorKind::StoreDenied,
                Some("OOM") => ErrorKind::StoreFull,
                _ => ErrorKind::StoreUnavailable,
            },
        };
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

static SCRIPT_DIGEST: LazyLock<Box<str>> =
    LazyLock::new(|| redis::Script::new(script::SOURCE).get_hash().into());

fn question(command: &mut Cmd, keys: &[String], request: &Request<'_>, order: Order) {
    command.arg(keys.len()).arg(keys);
    script::arguments(command, request, order);
}

/// `deny` and `unlimited` need nobody's answer.
fn stateless(request: &Request<'_>) -> Outcome {
    let states = request.policy.limits().iter().map(|_| State::Fresh).collect();
    Outcome {
        admitted: !request.policy.never_admits(request.cost),
        now: clock::resolve(request.time, false),
        states,
    }
}
