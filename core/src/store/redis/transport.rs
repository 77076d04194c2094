//! Connections: made when first needed, one caller each at a time, dropped at the first doubt.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redis::{Client, Connection, ConnectionLike, RedisError, Value};

use super::signals;
use super::uri::Settings;
use crate::store::fork::{self, Held};

/// A connection that was idle for longer is asked whether it still is one: servers and firewalls
/// drop them, and the first decision should not be the one to find that out.
const FRESH: Duration = Duration::from_secs(1);

pub(super) struct Transport {
    client: Client,
    idle: Mutex<Idle>,
    /// Whether this process has tried to connect: only its first try may take longer.
    tried: AtomicBool,
}

/// The idle connections, the last one used last, and the process that they belong to, by its
/// generation.
#[derive(Default)]
struct Idle {
    generation: u32,
    connections: Vec<(Connection, Instant)>,
}

/// What went wrong, and whether the request may have reached the server.
pub(super) struct Failure {
    pub error: RedisError,
    pub sent: bool,
}

impl Failure {
    fn unsent(error: RedisError) -> Self {
        Self { error, sent: false }
    }
}

impl Transport {
    pub fn new(settings: &Settings) -> Result<Self, RedisError> {
        Ok(Self {
            client: Client::open(settings.connection.clone())?,
            idle: Mutex::default(),
            tried: AtomicBool::new(false),
        })
    }

    /// Runs `exchange` on a connection. One that fails in transit is dropped, since an answer that
    /// comes too late would be taken for the next one's; the idle ones go with it, as they most
    /// likely share its fate.
    pub fn run(
        &self,
        settings: &Settings,
        exchange: impl FnOnce(&mut Connection) -> Result<Value, RedisError>,
    ) -> Result<Value, Failure> {
        let _signals = signals::Held::new();
        let (mut connection, fresh) = match self.take_idle().map_err(Failure::unsent)? {
            Some(connection) => (connection, false),
            None => (self.connect(settings).map_err(Failure::unsent)?, true),
        };
        let answer = exchange(&mut connection);
        let broken =
            answer.as_ref().is_err_and(|error| error.is_io_error() || error.is_unrecoverable_error());
        if broken || !connection.is_open() {
            fork::lock(&self.idle).connections.clear();
        } else if !fresh || limit_waiting(&connection, settings.timeout).is_ok() {
            let mut idle = fork::lock(&self.idle);
            if idle.generation == fork::generation() && idle.connections.len() < settings.pool {
                idle.connections.push((connection, Instant::now()));
            }
        }
        answer.map_err(|error| Failure { error, sent: true })
    }

    /// The one lock that is kept beside others: held around a fork.
    pub fn lock(&self) -> Box<dyn Held + '_> {
        Box::new(fork::lock(&self.idle))
    }

    /// An idle connection that is still one. A server that does not answer has used up the deadline.
    fn take_idle(&self) -> Result<Option<Connection>, RedisError> {
        while let Some((mut connection, since)) = self.pop_idle() {
            if since.elapsed() < FRESH {
                return Ok(Some(connection));
            }
            match redis::cmd("PING").exec(&mut connection) {
                Ok(()) => return Ok(Some(connection)),
                Err(error) if error.is_timeout() => return Err(error),
                // A refusal to answer is an answer.
                Err(error) if !error.is_io_error() && !error.is_unrecoverable_error() => {
                    return Ok(Some(connection));
                }
                Err(_) => {}
            }
        }
        Ok(None)
    }

    fn pop_idle(&self) -> Option<(Connection, Instant)> {
        let mut idle = fork::lock(&self.idle);
        let generation = fork::generation();
        if idle.generation != generation {
            // A child made by fork: the sockets are its parent's, and not a word may be said on them.
            idle.connections.clear();
            idle.generation = generation;
            self.tried.store(false, Ordering::Relaxed);
        }
        idle.connections.pop()
    }

    /// A connection whose first exchange waits only for what is left of the deadline.
    fn connect(&self, settings: &Settings) -> Result<Connection, RedisError> {
        let first = !self.tried.swap(true, Ordering::Relaxed);
        let deadline = if first { settings.connect_timeout.max(settings.timeout) } else { settings.timeout };
        let begun = Instant::now();
        let connection = self.client.get_connection_with_timeout(deadline)?;
        let left = deadline.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
        limit_waiting(&connection, left)?;
        Ok(connection)
    }
}

fn limit_waiting(connection: &Connection, timeout: Duration) -> Result<(), RedisError> {
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))
}
