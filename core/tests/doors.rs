//! Every way in to a server but TLS: hosts, sockets, users, passwords and where they are, databases.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::fresh_prefix;
use common::server::Server;
use mirab::{Error, ErrorKind, Limiter, OnStoreFailure, Policy, Store};

/// A limiter that says what is wrong, and does not mind a slow machine.
fn open(uri: &str) -> Limiter {
    let builder = Limiter::builder(Policy::parse("5/hour").unwrap());
    let store = Store::open(&format!("{uri}&timeout_ms=5000&connect_timeout_ms=5000")).unwrap();
    builder.store(store).on_store_failure(OnStoreFailure::Raise).build().unwrap()
}

/// Takes one of a key of its own, and sees it taken.
fn comes_in(uri: &str) {
    let key = fresh_prefix();
    let limiter = open(uri);
    let used = limiter.acquire(&key, 1).and_then(|_| limiter.peek(&key, 1)).map(|decision| decision.used());
    assert_eq!(used, Ok(1), "{uri}");
}

fn stays_out(uri: &str) -> Error {
    open(uri).acquire("k", 1).expect_err(uri)
}

#[track_caller]
fn assert_says(error: &Error, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}: {words:?} missing");
    assert!(!text.contains('\n'), "{text}");
}

#[test]
fn hosts_by_both_names() {
    let server = Server::start(&[]);
    comes_in(&server.uri(""));
    comes_in(&server.uri("").replace("redis://", "valkey://"));
    comes_in(&server.uri("").replace("127.0.0.1", "localhost"));
}

#[test]
fn sockets_with_users_and_databases() {
    let server = Server::start(&["--unixsocket", "a@b c.sock"]);
    server.tell(&["ACL", "SETUSER", "app", "on", ">pass", "~*", "+@all"]);
    let prefix = fresh_prefix();
    let path = server.dir().join("a@b%20c.sock");
    let uri = |who: &str| format!("redis+unix://{who}{}?prefix={prefix}", path.display());
    comes_in(&uri(""));
    comes_in(&uri("app:pass@"));
    assert_says(&stays_out(&uri("app:wrong@")), ErrorKind::StoreDenied, &["WRONGPASS"]);
    comes_in(&format!("{}&db=2", uri("").replace("redis+unix", "valkey+unix")));
    let keys = |database: &str| {
        let mut raw = server.raw();
        redis::cmd("SELECT").arg(database).exec(&mut raw).unwrap();
        redis::cmd("DBSIZE").query::<u64>(&mut raw).unwrap()
    };
    assert_eq!((keys("0"), keys("2")), (2, 1));
    let missing = stays_out(&uri("").replace(".sock", ".none"));
    assert_says(&missing, ErrorKind::StoreUnavailable, &["c.none", "No such file"]);
}

#[test]
fn users_and_passwords() {
    let server = Server::start(&[]);
    server.tell(&["ACL", "SETUSER", "app", "on", ">p@ss:/?#& %\u{e4}", "~*", "+@all"]);
    server.tell(&["ACL", "SETUSER", "nopass", "on", "nopass", "~*", "+@all"]);
    comes_in(&server.uri_as("app:p@ss:%2F%3F%23&%20%25\u{e4}@", ""));
    comes_in(&server.uri_as("app:p%40ss%3A%2f%3f%23%26%20%25%C3%A4@", ""));
    comes_in(&server.uri_as("nopass@", ""));
    for who in ["app:wrong@", "app@", "nobody:p@", ":p@"] {
        let error = stays_out(&server.uri_as(who, ""));
        assert_eq!(error.kind(), ErrorKind::StoreDenied, "{who}: {error}");
    }
}

#[test]
fn a_password_without_a_user() {
    let server = Server::start(&["--requirepass", "secret"]);
    comes_in(&server.uri_as(":secret@", ""));
    comes_in(&server.uri_as("default:secret@", ""));
    assert_says(&stays_out(&server.uri_as(":other@", "")), ErrorKind::StoreDenied, &["WRONGPASS"]);
    assert_says(&stays_out(&server.uri("")), ErrorKind::StoreDenied, &["NOAUTH"]);
}

#[test]
fn a_password_in_the_environment() {
    let server = Server::start(&[]);
    // Of all variables this one is there whoever runs the test.
    server.tell(&["CONFIG", "SET", "requirepass", &std::env::var("PATH").unwrap()]);
    comes_in(&server.uri("&password_env=PATH"));
    comes_in(&server.uri_as("default@", "&password_env=PATH"));
    let unset = stays_out(&server.uri("&password_env=MIRAB_NOT_SET"));
    assert_says(&unset, ErrorKind::StoreUnavailable, &["MIRAB_NOT_SET", "password_env", "not set"]);
}

#[test]
fn a_password_in_a_file_that_changes() {
    let server = Server::start(&["--requirepass", "first"]);
    let file = server.dir().join("password");
    let uri = server.uri(&format!("&password_file={}", file.display()));
    let missing = stays_out(&uri);
    assert_says(&missing, ErrorKind::StoreUnavailable, &["password_file", "/password", "No such file"]);
    fs::write(&file, "first\n").unwrap();
    let limiter = open(&uri);
    limiter.acquire("k", 1).unwrap();

    let mut raw = server.raw();
    redis::cmd("CONFIG").arg(&["SET", "requirepass", "second"]).exec(&mut raw).unwrap();
    // Who is in stays in; a new connection needs the new password.
    assert_eq!(limiter.acquire("k", 1).unwrap().used(), 2);
    redis::cmd("CLIENT").arg(&["KILL", "TYPE", "normal"]).exec(&mut raw).unwrap();
    let refused = denial(&limiter);
    assert_says(&refused, ErrorKind::StoreDenied, &["WRONGPASS"]);
    fs::write(&file, "second\r\n").unwrap();
    // The same limiter, without a word to it.
    let begun = Instant::now();
    while let Err(error) = limiter.peek("k", 1) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{error}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let used = limiter.peek("k", 1).unwrap().used();
    assert_eq!(used, 2, "the state is where it was");
}

/// The first error of that limiter that is a denial; what is on its way when a connection breaks is lost.
fn denial(limiter: &Limiter) -> Error {
    let errors = (0..100).filter_map(|_| limiter.peek("k", 1).err());
    errors.into_iter().find(|error| error.kind() == ErrorKind::StoreDenied).expect("a denial")
}

#[test]
fn databases_are_apart() {
    let server = Server::start(&[]);
    let uri = server.uri("");
    let (base, parameters) = uri.split_once('?').unwrap();
    let limiter = |database: &str| open(&format!("{base}{database}?{parameters}"));
    assert_eq!(limiter("/3").acquire("k", 1).unwrap().used(), 1);
    assert_eq!(limiter("/3").acquire("k", 1).unwrap().used(), 2);
    for other in ["", "/", "/0"] {
        assert_eq!(limiter(other).peek("k", 1).unwrap().used(), 0, "{other}");
    }
    let beyond = limiter("/99").acquire("k", 1).unwrap_err();
    assert_says(&beyond, ErrorKind::StoreUnavailable, &["/99", "out of range"]);
}

#[test]
fn a_database_that_may_not_be_selected_is_not_taken_for_another() {
    let server = Server::start(&[]);
    server.tell(&["ACL", "SETUSER", "app", "on", ">pass", "~*", "+@all", "-select"]);
    let uri = server.uri_as("app:pass@", "");
    comes_in(&uri);
    let error = stays_out(&uri.replace('?', "/3?"));
    assert_says(&error, ErrorKind::StoreDenied, &["NOPERM", "select"]);
}

#[test]
fn no_secret_is_ever_shown() {
    // A server that does not know the command tells what was sent to it.
    let server = Server::start(&["--rename-command", "AUTH", "LOGIN"]);
    let uri = server.uri_as("hunter1:hunter2@", "&hash_keys=hunter3hunter3hunter3");
    let store = Store::open(&uri).unwrap();
    let builder = Limiter::builder(Policy::parse("5/hour").unwrap()).store(store.clone());
    let mut shown = vec![format!("{store:?} {builder:?}")];
    let limiter = builder.on_store_failure(OnStoreFailure::Raise).build().unwrap();
    for _ in 0..10 {
        let error = limiter.acquire("k", 1).unwrap_err();
        shown.push(format!("{error} {error:?}"));
    }
    assert!(shown[1].contains("unknown command"), "{shown:?}");
    shown.push(format!("{limiter:?} {:?}", limiter.health().unwrap()));
    let news = limiter.take_news();
    assert_eq!(news.len(), 1, "{news:?}");
    shown.extend(news.into_iter().map(|news| news.text));
    for text in shown {
        assert!(!text.contains("hunter2") && !text.contains("hunter3"), "{text}");
    }
}
