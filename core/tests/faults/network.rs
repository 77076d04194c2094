//! What answers in the server's place, or keeps its answers back.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use mirab::{Decision, OnStoreFailure};

use crate::check_return;
use crate::common::load::{BOUND, TOLERANCE, limiter_on, outage, under_load};
use crate::common::relay::{Manner, Relay};
use crate::common::say;
use crate::common::server::Server;

fn misbehaving(scene: &str, manner: Manner) {
    let server = Server::start(&[]);
    let relay = Relay::to(&server.address());
    let limiter = limiter_on(&relay.uri(""), OnStoreFailure::Local);
    let told = under_load(&limiter, |load| {
        load.decided_by_store(500);
        relay.set(manner);
        load.failed(500);
        load.go_on(outage() / 2);
        relay.set(Manner::Pass);
        check_return(scene, load.decided_by_store(500));
    });
    told.check(scene, &limiter);
    told.check_admitted(scene, 0);
    told.check_charges(scene, &server, 0);
}

#[test]
fn never_an_answer() {
    misbehaving("never an answer", Manner::Silence);
}

#[test]
fn garbage() {
    misbehaving(
        "garbage",
        Manner::Garbage(&[
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            b"\x15\x03\x01\x00\x02\x02\x28",
            b"\0\0\0\0",
            b"*-7\r\n",
            b"*99999999999999999999\r\n",
            b"$5\r\nabc",
            b":1\r",
        ]),
    );
}

#[test]
fn well_formed_garbage() {
    misbehaving(
        "well-formed garbage",
        Manner::Garbage(&[
            b"+OK\r\n",
            b":1\r\n",
            b"*0\r\n",
            b"*3\r\n:-1\r\n:-1\r\n:-1\r\n",
            b"$-1\r\n",
            b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
            b":1\r\n+OK\r\n:2\r\n",
        ]),
    );
}

#[test]
fn every_connection_is_reset() {
    misbehaving("every connection is reset", Manner::Reset);
}

#[test]
fn one_byte_at_a_time() {
    misbehaving("one byte at a time", Manner::Drip);
}

/// However many calls they are parted into, decisions that are asked for together have one deadline.
#[test]
fn many_at_once_of_a_slow_server() {
    let scene = "many at once of a slow server";
    let server = Server::start(&[]);
    let relay = Relay::to(&server.address());
    let limiter = limiter_on(&relay.uri(""), OnStoreFailure::Local);
    let items: Vec<(String, u64)> = (0..64 * 40).map(|key| (format!("k{key}"), 1)).collect();
    assert!(!limiter.acquire("k", 1).unwrap().degraded());
    // Each call is in time by itself; all of them one after the other take 1.2 s.
    relay.set(Manner::Slow(Duration::from_millis(30)));
    let begun = Instant::now();
    let decisions = limiter.acquire_many(&items).unwrap();
    let took = begun.elapsed();
    say(format_args!("{scene}: {} decisions took {took:?} (bound {BOUND:?})", decisions.len()));
    // What was decided in time stays decided, and the rest is decided here.
    let by_store = decisions.iter().take_while(|decision| !decision.degraded()).count();
    assert!(by_store == 0 || by_store == 64, "{by_store} decided by the store");
    assert!(decisions[by_store..].iter().all(Decision::degraded));
    assert!(decisions.iter().all(Decision::allowed));
    assert!(took <= TOLERANCE * BOUND, "{took:?}");
}

#[test]
fn packets_vanish() {
    let scene = "packets vanish";
    let server = Server::start(&[]);
    let hole = BlackHole::dig();
    let address = hole.listener.local_addr().unwrap();
    let uri = format!("redis://{address}?prefix=hole-{}", std::process::id());
    let limiter = limiter_on(&uri, OnStoreFailure::Local);
    let begun = Instant::now();
    assert!(limiter.acquire("first", 1).unwrap().degraded());
    say(format_args!("{scene}: the first call took {:?}", begun.elapsed()));
    assert!(begun.elapsed() < TOLERANCE * BOUND);
    let told = under_load(&limiter, |load| {
        load.failed(500);
        load.go_on(outage() / 2);
        hole.fill_in(&server.address());
        check_return(scene, load.decided_by_store(500));
    });
    told.check_times(scene);
    told.check_admitted(scene, 0);
    told.check_charges(scene, &server, 0);
}

/// A port on which connections are neither made nor refused.
struct BlackHole {
    listener: TcpListener,
    /// Who stands in its queue.
    _waiting: Vec<TcpStream>,
}

impl BlackHole {
    fn dig() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // With a queue of nobody and one who stands in it, the kernel drops what others say.
        rustix::net::listen(&listener, 0).unwrap();
        let address = listener.local_addr().unwrap();
        let soon = Duration::from_millis(100);
        let _waiting = std::iter::from_fn(|| TcpStream::connect_timeout(&address, soon).ok()).collect();
        Self { listener, _waiting }
    }

    /// Takes connections from now on, and leads them to the server.
    fn fill_in(self, server: &str) {
        Relay::on(self.listener, server);
    }
}
