//! TLS for real: a Redis with certificates that are made on the spot.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use common::certificates::{Authority, Certificate};
use common::fresh_prefix;
use common::server::{Server, free_port};
use common::turning::run;
use mirab::{Driver, Error, ErrorKind, Limiter, OnStoreFailure, Policy, Store, Time};

const HERE: &str = "DNS:localhost,IP:127.0.0.1";

/// A server with TLS on a port of its own.
struct Secured {
    _server: Server,
    port: u16,
}

impl Secured {
    /// One that has this certificate, and asks of its clients for one of the authority as `clients` says.
    fn start(authority: &Authority, own: &Certificate, clients: &str, more: &[&str]) -> Self {
        let (port, trusted) = (free_port(), authority.certificate());
        let number = port.to_string();
        let options = [
            ["--tls-port", &number],
            ["--tls-cert-file", text(&own.certificate)],
            ["--tls-key-file", text(&own.key)],
            ["--tls-ca-cert-file", text(&trusted)],
            ["--tls-auth-clients", clients],
        ];
        Self { _server: Server::start(&[options.as_flattened(), more].concat()), port }
    }

    fn uri(&self, parameters: &str) -> String {
        format!("rediss://localhost:{}?prefix={}{parameters}", self.port, fresh_prefix())
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn trusting(authority: &Authority) -> String {
    format!("&tls_ca={}", text(&authority.certificate()))
}

fn showing(certificate: &Certificate) -> String {
    format!("&tls_cert={}&tls_key={}", text(&certificate.certificate), text(&certificate.key))
}

fn ask(uri: &str) -> Result<u64, Error> {
    let store = Store::open(&format!("{uri}&timeout_ms=5000&connect_timeout_ms=5000")).unwrap();
    let builder = Limiter::builder(Policy::parse("5/hour").unwrap()).store(store);
    let limiter = builder.on_store_failure(OnStoreFailure::Raise).build().unwrap();
    limiter.acquire("k", 1)?;
    Ok(limiter.acquire("k", 1)?.used())
}

/// That the door is shut, with an error in one line that says so.
#[track_caller]
fn assert_shut(uri: &str, words: &[&str]) {
    let error = ask(uri).expect_err(uri);
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}: {words:?} missing");
    assert!(!text.contains('\n'), "{text}");
}

#[test]
fn an_authority_of_ones_own() {
    let authority = Authority::new();
    let own = authority.sign("server", HERE);
    for protocols in ["TLSv1.3", "TLSv1.2"] {
        let server = Secured::start(&authority, &own, "no", &["--tls-protocols", protocols]);
        let uri = server.uri(&trusting(&authority));
        assert_eq!(ask(&uri), Ok(2), "{protocols}");
        // The other name, an address in place of the host, and both at once reach the same bucket.
        assert_eq!(ask(&uri.replace("rediss://localhost", "valkeys://127.0.0.1")), Ok(4), "{protocols}");
    }
}

#[test]
fn a_password_goes_with_it() {
    let authority = Authority::new();
    let own = authority.sign("server", HERE);
    let server = Secured::start(&authority, &own, "no", &["--requirepass", "secret"]);
    let uri = server.uri(&trusting(&authority));
    assert_eq!(ask(&uri.replace("://", "://:secret@")), Ok(2));
    assert_eq!(ask(&uri).unwrap_err().kind(), ErrorKind::StoreDenied);
}

#[test]
fn another_authority_is_not_believed() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = Secured::start(&authority, &authority.sign("server", HERE), "no", &[]);
    let file = stranger.certificate();
    assert_shut(&server.uri(&trusting(&stranger)), &["signed by none", text(&file), "tls_ca"]);
    assert_shut(&server.uri(""), &["signed by none", "this machine trusts", "tls_ca"]);
}

#[test]
fn another_host_is_not_believed() {
    let authority = Authority::new();
    let server = Secured::start(&authority, &authority.sign("server", "DNS:other.example"), "no", &[]);
    let uri = server.uri(&trusting(&authority));
    assert_shut(&uri, &["not valid for name", "localhost", "other.example"]);
    assert_shut(&uri.replace("localhost", "127.0.0.1"), &["not valid for name", "127.0.0.1"]);
}

#[test]
fn a_server_that_wants_to_know_its_clients() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = Secured::start(&authority, &authority.sign("server", HERE), "yes", &[]);
    let uri = server.uri(&trusting(&authority));
    assert_eq!(ask(&format!("{uri}{}", showing(&authority.sign("client", "DNS:client")))), Ok(2));
    assert_shut(&uri, &["wants a certificate", "tls_cert", "tls_key"]);
    let unknown = stranger.sign("client", "DNS:client");
    assert_shut(
        &format!("{uri}{}", showing(&unknown)),
        &["refused", text(&unknown.certificate), "tls_cert", "UnknownCA"],
    );
}

#[test]
fn files_that_are_no_use() {
    let authority = Authority::new();
    let (client, other) = (authority.sign("client", "DNS:client"), authority.sign("other", "DNS:client"));
    let empty = authority.file("empty.pem");
    fs::write(&empty, "nothing\n").unwrap();
    // The files are looked at after the connection is made.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = |parameters: &str| {
        let port = listener.local_addr().unwrap().port();
        format!("rediss://127.0.0.1:{port}?prefix={}{parameters}", fresh_prefix())
    };
    assert_shut(&uri("&tls_ca=/none.pem"), &["/none.pem", "tls_ca", "No such file"]);
    assert_shut(&uri(&format!("&tls_ca={}", text(&empty))), &["empty.pem", "tls_ca", "no certificate"]);
    let mixed = |certificate: &Path, key: &Path| {
        uri(&showing(&Certificate { certificate: certificate.into(), key: key.into() }))
    };
    assert_shut(&mixed(&empty, &client.key), &["empty.pem", "tls_cert", "no certificate"]);
    assert_shut(&mixed(&client.certificate, &empty), &["empty.pem", "tls_key", "no private key"]);
    assert_shut(&mixed(&client.certificate, &other.key), &["client.pem", "tls_key", "KeyMismatch"]);
}

#[test]
fn what_answers_without_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"-ERR what?\r\n");
        }
    });
    assert_shut(&format!("rediss://{address}?prefix=p"), &["TLS", "does not speak it"]);
}

#[test]
fn certificates_may_be_renewed() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = Secured::start(&authority, &authority.sign("server", HERE), "no", &[]);
    let file = authority.file("trusted.pem");
    let uri = server.uri(&format!("&tls_ca={}", text(&file)));
    fs::copy(stranger.certificate(), &file).unwrap();
    assert_shut(&uri, &["signed by none"]);
    fs::copy(authority.certificate(), &file).unwrap();
    assert_eq!(ask(&uri), Ok(2));
}

#[test]
fn a_command_may_be_long() {
    let authority = Authority::new();
    let server = Secured::start(&authority, &authority.sign("server", HERE), "no", &[]);
    let policy: Vec<String> = (1..=16).map(|days| format!("9/{days} days")).collect();
    let store = Store::open(&format!("{}&timeout_ms=5000", server.uri(&trusting(&authority)))).unwrap();
    let builder = Limiter::builder(Policy::parse(&policy.join("; ")).unwrap()).store(store);
    let limiter = builder.on_store_failure(OnStoreFailure::Raise).build().unwrap();
    let items: Vec<(String, u64)> = (0..64).map(|id| (format!("{id:0120}"), 1)).collect();
    let decided = limiter.acquire_many(&items).unwrap();
    assert!(decided.iter().all(mirab::Decision::allowed));
}

#[test]
fn in_a_loop_as_elsewhere() {
    let authority = Authority::new();
    let server = Secured::start(&authority, &authority.sign("server", HERE), "no", &[]);
    let policy: Vec<String> = (1..=16).map(|days| format!("9/{days} days")).collect();
    let store = Store::open(&format!("{}&timeout_ms=20000", server.uri(&trusting(&authority)))).unwrap();
    let builder = Limiter::builder(Policy::parse(&policy.join("; ")).unwrap()).store(store);
    let limiter = builder.on_store_failure(OnStoreFailure::Raise).build().unwrap();
    let mut driver = Driver::new(&limiter).unwrap().unwrap();
    // More than the socket takes at once.
    for id in 0..2000 {
        let key = format!("{id:0120}");
        assert!(driver.acquire(&limiter, id, key.as_bytes(), 1, Time::STORE).unwrap().is_none());
    }
    let answered = run(&mut driver, 2000);
    assert!(answered.values().all(|one| one.as_ref().is_ok_and(mirab::BareDecision::allowed)));
}
