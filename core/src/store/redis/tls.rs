//! TLS over a socket, by a deadline: rustls makes the bytes, the socket carries them.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::socket::Socket;
use super::uri::Address;

/// What a URI says of TLS.
#[derive(Default)]
pub(super) struct Tls {
    /// Whose signature on the server's certificate is trusted; the system's authorities where none is given.
    pub authority: Option<PathBuf>,
    /// The client's own certificate and its key.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

pub(super) struct Session(ClientConnection);

impl Session {
    pub fn new(tls: &Tls, address: &Address) -> io::Result<Self> {
        let Address::Tcp { host, .. } = address else {
            return Err(io::Error::other("TLS is for hosts, not for sockets of this machine"));
        };
        let name = ServerName::try_from(host.clone()).map_err(|error| {
            io::Error::other(format!("{host:?} is no name that a certificate can have: {error}"))
        })?;
        let connection = ClientConnection::new(Arc::new(config(tls)?), name).map_err(io::Error::other)?;
        Ok(Self(connection))
    }

    pub fn send(&mut self, socket: &Socket, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        self.0.writer().write_all(bytes)?;
        self.flush(socket, deadline)?;
        while self.0.is_handshaking() {
            self.fill(socket, deadline)?;
            self.flush(socket, deadline)?;
        }
        Ok(())
    }

    /// Takes what is to be sent next.
    pub fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.writer().write_all(bytes)
    }

    /// Sends as far as that goes without waiting; true when all is sent.
    pub fn flush_now(&mut self, socket: &Socket) -> io::Result<bool> {
        while self.0.wants_write() {
            match self.0.write_tls(&mut Carrier(socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Adds what is there of what the server says to `input`, without waiting.
    pub fn receive_now(&mut self, socket: &Socket, input: &mut Vec<u8>) -> io::Result<()> {
        loop {
            match self.0.read_tls(&mut Carrier(socket)) {
                Ok(0) => return Err(super::link::closed()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let state =
                self.0.process_new_packets().map_err(|error| io::Error::other(format!("TLS: {error}")))?;
            let start = input.len();
            input.resize(start + state.plaintext_bytes_to_read(), 0);
            self.0.reader().read_exact(&mut input[start..])?;
        }
    }

    /// Adds what the server says next to `input`.
    pub fn receive(&mut self, socket: &Socket, input: &mut Vec<u8>, deadline: Instant) -> io::Result<()> {
        let mut some = [0; 4096];
        loop {
            match self.0.reader().read(&mut some) {
                Ok(0) => return Err(super::link::closed()),
                Ok(length) => {
                    input.extend_from_slice(&some[..length]);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.fill(socket, deadline)?;
                    // The protocol's own answers, such as new keys.
                    self.flush(socket, deadline)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn flush(&mut self, socket: &Socket, deadline: Instant) -> io::Result<()> {
        while self.0.wants_write() {
            match self.0.write_tls(&mut Carrier(socket)) {
                Ok(_) => {}
                Err(error) => pass(socket, error, true, deadline)?,
            }
        }
        Ok(())
    }

    fn fill(&mut self, socket: &Socket, deadline: Instant) -> io::Result<()> {
        loop {
            match self.0.read_tls(&mut Carrier(socket)) {
                Ok(0) => return Err(super::link::closed()),
                Ok(_) => break,
                Err(error) => pass(socket, error, false, deadline)?,
            }
        }
        match self.0.process_new_packets() {
            Ok(_) => Ok(()),
            Err(error) => Err(io::Error::other(format!("TLS: {error}"))),
        }
    }
}

/// Waits where an error only says to.
fn pass(socket: &Socket, error: io::Error, writable: bool, deadline: Instant) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::WouldBlock => socket.wait(writable, deadline),
        io::ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}

struct Carrier<'a>(&'a Socket);

impl Read for Carrier<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.receive(into)
    }
}

impl Write for Carrier<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Files are read anew for each connection, so that certificates may be renewed.
fn config(tls: &Tls) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    match &tls.authority {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| unusable(path, &error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots);
    match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate)?;
            let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
            builder.with_client_auth_cert(chain, key_der).map_err(|error| unusable(certificate, &error))
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

fn certificates(path: &PathBuf) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, &error))?;
    let certificates: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| unusable(path, &error))?;
    if certificates.is_empty() {
        return Err(unusable(path, &"it holds no certificate"));
    }
    Ok(certificates)
}

fn unusable(path: &std::path::Path, why: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("the file {}: {why}", path.display()))
}
