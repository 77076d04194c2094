//! A relay in front of a Redis that a test can cut, lead elsewhere, and have misbehave.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What becomes of the server's replies. What is asked reaches it in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Pass,
    /// Nothing is ever answered.
    Silence,
    /// Something else is answered: each time the next of these.
    Garbage(&'static [&'static [u8]]),
    /// Every connection is reset: a new one at once, an old one as soon as it is used.
    Reset,
    /// The reply comes late.
    Slow(Duration),
    /// The reply comes a byte at a time, with a pause after each.
    Drip,
}

/// The pause after each byte that drips: a reply of the script has some 30.
const PAUSE: Duration = Duration::from_millis(10);

pub struct Relay {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    target: Mutex<String>,
    manner: Mutex<Manner>,
    open: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Relays every connection to `server` (`redis://HOST:PORT`, or `HOST:PORT`).
    pub fn to(server: &str) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), server)
    }

    /// Relays every connection that is made to `listener`.
    pub fn on(listener: TcpListener, server: &str) -> Self {
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: Mutex::new(server.trim_start_matches("redis://").to_owned()),
            manner: Mutex::new(Manner::Pass),
            open: Mutex::default(),
        });
        let ours = Arc::clone(&shared);
        thread::spawn(move || listener.incoming().flatten().for_each(|client| ours.accept(client)));
        Self { address, shared }
    }

    pub fn uri(&self, parameters: &str) -> String {
        format!("redis://{}?prefix={}{parameters}", self.address, super::fresh_prefix())
    }

    pub fn set(&self, manner: Manner) {
        *self.shared.manner.lock().unwrap() = manner;
    }

    /// Leads new connections to another server (`HOST:PORT`).
    pub fn lead_to(&self, server: &str) {
        server.clone_into(&mut self.shared.target.lock().unwrap());
    }

    /// Cuts every open connection.
    pub fn cut(&self) {
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn manner(&self) -> Manner {
        *self.manner.lock().unwrap()
    }

    fn accept(self: &Arc<Self>, client: TcpStream) {
        if self.manner() == Manner::Reset {
            return reset(&client);
        }
        let target = self.target.lock().unwrap().clone();
        // A server that is down is to its client as if there were no relay.
        let Ok(server) = TcpStream::connect(target) else { return reset(&client) };
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
        }
        self.open.lock().unwrap().extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
        self.pipe(client.try_clone().unwrap(), server.try_clone().unwrap(), |shared, bytes, _, server| {
            if shared.manner() == Manner::Reset {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            (&mut &*server).write_all(bytes)
        });
        self.pipe(server, client, Self::answer);
    }

    /// Carries what `from` says to `to`, in its own way; ends both when it can't.
    fn pipe(
        self: &Arc<Self>,
        from: TcpStream,
        to: TcpStream,
        carry: impl Fn(&Self, &[u8], &mut usize, &TcpStream) -> io::Result<()> + Send + 'static,
    ) {
        let shared = Arc::clone(self);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            let mut count = 0;
            while let Ok(length @ 1..) = (&from).read(&mut bytes) {
                if carry(&shared, &bytes[..length], &mut count, &to).is_err() {
                    // Both sides see a reset, whoever still holds the sockets.
                    reset(&from);
                    reset(&to);
                    return;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
    }

    fn answer(&self, bytes: &[u8], count: &mut usize, mut client: &TcpStream) -> io::Result<()> {
        match self.manner() {
            Manner::Pass => client.write_all(bytes),
            Manner::Silence => Ok(()),
            Manner::Slow(late) => {
                thread::sleep(late);
                client.write_all(bytes)
            }
            Manner::Reset => Err(io::ErrorKind::ConnectionReset.into()),
            Manner::Garbage(texts) => {
                *count += 1;
                client.write_all(texts[*count % texts.len()])
            }
            Manner::Drip => {
                for (place, byte) in bytes.iter().enumerate() {
                    if self.manner() != Manner::Drip {
                        return client.write_all(&bytes[place..]);
                    }
                    client.write_all(&[*byte])?;
                    thread::sleep(PAUSE);
                }
                Ok(())
            }
        }
    }
}

/// Ends a connection as a crash of the other side does.
fn reset(stream: &TcpStream) {
    let _ = rustix::net::connect_unspec(stream);
}
