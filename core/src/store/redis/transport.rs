//! Connections: made when first needed, one caller each at a time, dropped at the first doubt.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use redis::{Client, Connection, ConnectionLike, RedisError, Value};

use super::uri::Settings;

pub(super) struct Transport {
    client: Client,
    idle: Mutex<Idle>,
    /// Whether this process has ever had a connection: only the first may take longer.
    connected: AtomicBool,
}

/// The idle connections and the process that they belong to.
#[derive(Default)]
struct Idle {
    owner: u32,
    connections: Vec<Connection>,
}

impl Transport {
    pub fn new(settings: &Settings) -> Result<Self, RedisError> {
        Ok(Self {
            client: Client::open(settings.connection.clone())?,
            idle: Mutex::default(),
            connected: AtomicBool::new(false),
        })
    }

    /// Runs `exchange` on a connection. One that fails in transit is dropped, since an answer that
    /// comes too late would be taken for the next one's; the idle ones go with it, as they most
    /// likely share its fate.
    pub fn run(
        &self,
        settings: &Settings,
        exchange: impl FnOnce(&mut Connection) -> Result<Value, RedisError>,
    ) -> Result<Value, RedisError> {
        let mut connection = match self.take_idle() {
            Some(connection) => connection,
            None => self.connect(settings)?,
        };
        let answer = exchange(&mut connection);
        let mut idle = self.idle.lock();
        match &answer {
            Err(error) if error.is_io_error() || error.is_unrecoverable_error() || !connection.is_open() => {
                idle.connections.clear();
            }
            _ if idle.owner == process::id() && idle.connections.len() < settings.pool => {
                idle.connections.push(connection);
            }
            _ => {}
        }
        answer
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        let me = process::id();
        if idle.owner != me {
            // A child made by fork: the sockets are its parent's, and not a word may be said on them.
            idle.connections.clear();
            idle.owner = me;
            self.connected.store(false, Ordering::Relaxed);
        }
        idle.connections.pop()
    }

    fn connect(&self, settings: &Settings) -> Result<Connection, RedisError> {
        let first = !self.connected.load(Ordering::Relaxed);
        let deadline = if first { settings.connect_timeout.max(settings.timeout) } else { settings.timeout };
        let connection = self.client.get_connection_with_timeout(deadline)?;
        connection.set_read_timeout(Some(settings.timeout))?;
        connection.set_write_timeout(Some(settings.timeout))?;
        self.connected.store(true, Ordering::Relaxed);
        Ok(connection)
    }
}
