//! TLS over a socket, by a deadline: rustls makes the bytes, the socket carries them.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, RootCertStore};

use super::file;
use super::socket::Socket;
use super::uri::Address;

/// What a URI says of TLS.
#[derive(Clone, Default)]
pub(super) struct Tls {
    /// Whose signature on the server's certificate is trusted; the system's authorities where none is given.
    pub authority: Option<PathBuf>,
    /// The client's own certificate and its key.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

pub(super) struct Session {
    connection: ClientConnection,
    /// What was given, for an error to name it.
    tls: Tls,
}

impl Session {
    pub fn new(tls: &Tls, address: &Address) -> io::Result<Self> {
        let Address::Tcp { host, .. } = address else {
            return Err(io::Error::other("TLS is for hosts, not for sockets of this machine"));
        };
        let name = ServerName::try_from(host.clone()).map_err(|error| {
            io::Error::other(format!("{host:?} is no name that a certificate can have: {error}"))
        })?;
        let mut connection = ClientConnection::new(Arc::new(config(tls)?), name).map_err(io::Error::other)?;
        // It takes a whole command, however long, and what an event loop could not send yet.
        connection.set_buffer_limit(None);
        Ok(Self { connection, tls: tls.clone() })
    }

    pub fn send(&mut self, socket: &Socket, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        self.connection.writer().write_all(bytes)?;
        self.flush(socket, deadline)?;
        while self.connection.is_handshaking() {
            self.fill(socket, deadline)?;
            self.flush(socket, deadline)?;
        }
        Ok(())
    }

    /// Takes what is to be sent next.
    pub fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.connection.writer().write_all(bytes)
    }

    /// Sends as far as that goes without waiting; true when all is sent.
    pub fn flush_now(&mut self, socket: &Socket) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Carrier(socket)) {
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
            match self.connection.read_tls(&mut Carrier(socket)) {
                Ok(0) => return Err(super::link::closed()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let plain = self.process(socket)?;
            let start = input.len();
            input.resize(start + plain, 0);
            self.connection.reader().read_exact(&mut input[start..])?;
        }
    }

    /// Adds what the server says next to `input`.
    pub fn receive(&mut self, socket: &Socket, input: &mut Vec<u8>, deadline: Instant) -> io::Result<()> {
        let mut some = [0; 4096];
        loop {
            match self.connection.reader().read(&mut some) {
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
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Carrier(socket)) {
                Ok(_) => {}
                Err(error) => pass(socket, error, true, deadline)?,
            }
        }
        Ok(())
    }

    fn fill(&mut self, socket: &Socket, deadline: Instant) -> io::Result<()> {
        loop {
            match self.connection.read_tls(&mut Carrier(socket)) {
                Ok(0) => return Err(super::link::closed()),
                Ok(_) => break,
                Err(error) => pass(socket, error, false, deadline)?,
            }
        }
        self.process(socket).map(|_| ())
    }

    /// How many bytes can be read now.
    fn process(&mut self, socket: &Socket) -> io::Result<usize> {
        match self.connection.process_new_packets() {
            Ok(state) => Ok(state.plaintext_bytes_to_read()),
            Err(error) => {
                // The server is told why, so that its log says so, too.
                let _ = self.flush_now(socket);
                Err(io::Error::other(self.tls.explained(&error)))
            }
        }
    }
}

impl Tls {
    /// What went wrong, and what of the URI has to do with it.
    fn explained(&self, error: &rustls::Error) -> String {
        match error {
            // The second where an authority is trusted that has the same name and another key.
            rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            ) => {
                let signer = "the server's certificate is signed by none of the authorities";
                match &self.authority {
                    Some(file) => format!("TLS: {signer} in the file {} (tls_ca)", file.display()),
                    None => {
                        format!("TLS: {signer} that this machine trusts; tls_ca names the file of another")
                    }
                }
            }
            rustls::Error::InvalidCertificate(why) => format!("TLS: the server's certificate: {why}"),
            rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
                "TLS: the server wants a certificate of this client; tls_cert and tls_key name its files"
                    .into()
            }
            rustls::Error::AlertReceived(alert) => match &self.certificate {
                Some(file) => {
                    format!(
                        "TLS: the server refused, with the certificate {} (tls_cert): {alert:?}",
                        file.display()
                    )
                }
                None => format!("TLS: the server refused: {alert:?}"),
            },
            rustls::Error::InvalidMessage(_) => format!("TLS: what answers there does not speak it: {error}"),
            _ => format!("TLS: {error}"),
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
        Some(file) => {
            for certificate in certificates(file, "tls_ca")? {
                roots.add(certificate).map_err(|error| unusable(file, "tls_ca", &error))?;
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
            let chain = certificates(certificate, "tls_cert")?;
            let secret = PrivateKeyDer::from_pem_slice(&read(key, "tls_key")?)
                .map_err(|error| unreadable(key, "tls_key", &error))?;
            builder.with_client_auth_cert(chain, secret).map_err(|error| match error {
                rustls::Error::InvalidCertificate(CertificateError::Other(_)) => {
                    let why = "it must be an X.509 certificate of version 3 (openssl: -extfile)";
                    unusable(certificate, "tls_cert", &why)
                }
                error => unusable(certificate, "tls_cert, with its tls_key", &error),
            })
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

fn certificates(file: &Path, parameter: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    let pem = read(file, parameter)?;
    match CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>() {
        Ok(certificates) if certificates.is_empty() => {
            Err(unreadable(file, parameter, &pem::Error::NoItemsFound))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(unreadable(file, parameter, &error)),
    }
}

fn read(file: &Path, parameter: &str) -> io::Result<Vec<u8>> {
    file::read(file).map_err(|error| unusable(file, parameter, &error))
}

fn unreadable(file: &Path, parameter: &str, error: &pem::Error) -> io::Error {
    match error {
        pem::Error::NoItemsFound if parameter == "tls_key" => {
            unusable(file, parameter, &"it holds no private key")
        }
        pem::Error::NoItemsFound => unusable(file, parameter, &"it holds no certificate"),
        error => unusable(file, parameter, error),
    }
}

fn unusable(file: &Path, parameter: &str, why: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("TLS: the file {} ({parameter}): {why}", file.display()))
}
