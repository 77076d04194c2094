//! A server that is there and does not decide: full, loading, a replica, with other passwords; one that
//! forgets scripts and drops clients.

use std::thread;
use std::time::{Duration, Instant};

use mirab::{ErrorKind, Limiter, OnStoreFailure};

use crate::check_return;
use crate::common::load::{limiter_on, outage, under_load, wait_until};
use crate::common::relay::Relay;
use crate::common::say;
use crate::common::server::Server;

/// Mistreats a server for a while.
fn again_and_again(pause: Duration, mut mistreat: impl FnMut()) {
    let begun = Instant::now();
    while begun.elapsed() < outage() / 2 {
        mistreat();
        thread::sleep(pause);
    }
}

/// What failed last, as an operator is told.
fn said(limiter: &Limiter) -> Option<ErrorKind> {
    limiter.health().unwrap().last_error.map(|(kind, _)| kind)
}

#[test]
fn full() {
    let scene = "full";
    let server = Server::start(&["--maxmemory-policy", "noeviction"]);
    let limiter = limiter_on(&server.uri(""), OnStoreFailure::Local);
    let told = under_load(&limiter, |load| {
        load.decided_by_store(500);
        server.tell(&["CONFIG", "SET", "maxmemory", "1"]);
        load.failed(500);
        load.go_on(outage() / 4);
        wait_until("the reason", || said(&limiter) == Some(ErrorKind::StoreFull));
        server.tell(&["CONFIG", "SET", "maxmemory", "0"]);
        check_return(scene, load.decided_by_store(500));
    });
    told.check(scene, &limiter);
    told.check_admitted(scene, 0);
    told.check_charges(scene, &server, 0);
}

#[test]
fn scripts_are_flushed_in_a_loop() {
    let scene = "scripts are flushed";
    let server = Server::start(&[]);
    // Nothing fails here: no call is late by a deadline that no machine is too busy for.
    let limiter = limiter_on(&server.uri("&timeout_ms=5000"), OnStoreFailure::Raise);
    let mut flushes = 0;
    let told = under_load(&limiter, |load| {
        load.decided_by_store(500);
        let mut connection = server.raw();
        again_and_again(Duration::ZERO, || {
            redis::cmd("SCRIPT").arg("FLUSH").exec(&mut connection).unwrap();
            flushes += 1;
        });
        load.decided_by_store(100);
    });
    say(format_args!("{scene}: {flushes} times"));
    told.check(scene, &limiter);
    told.check_admitted(scene, 0);
    told.check_charges(scene, &server, 0);
}

#[test]
fn clients_are_killed_in_a_loop() {
    let scene = "clients are killed";
    let server = Server::start(&[]);
    let limiter = limiter_on(&server.uri(""), OnStoreFailure::Local);
    let told = under_load(&limiter, |load| {
        load.decided_by_store(500);
        let mut connection = server.raw();
        again_and_again(Duration::from_millis(1), || {
            redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").exec(&mut connection).unwrap();
        });
        check_return(scene, load.decided_by_store(500));
    });
    told.check(scene, &limiter);
    told.check_admitted(scene, 0);
    told.check_charges(scene, &server, 0);
}

#[test]
fn a_wrong_password_that_becomes_right() {
    let scene = "a wrong password";
    let server = Server::start(&["--requirepass", "old"]);
    let limiter = limiter_on(&server.uri_as(":new@", ""), OnStoreFailure::Local);
    let told = under_load(&limiter, |load| {
        load.failed(500);
        wait_until("the reason", || said(&limiter) == Some(ErrorKind::StoreDenied));
        let mut connection = server.raw();
        redis::cmd("CONFIG").arg("SET").arg("requirepass").arg("new").exec(&mut connection).unwrap();
        check_return(scene, load.decided_by_store(500));
        redis::cmd("CONFIG").arg("SET").arg("requirepass").arg("old").exec(&mut connection).unwrap();
    });
    told.check(scene, &limiter);
    told.check_admitted(scene, 0);
    told.check_charges(scene, &server, 0);
}

#[test]
fn a_server_that_is_still_loading() {
    let scene = "loading";
    // Each key takes 1 ms to load, and clients are answered each two megabytes.
    let mut server = Server::start(&["--key-load-delay", "1000", "--rdbcompression", "no"]);
    let mut connection = server.raw();
    let keys = outage().as_millis() as u64 / 2;
    for key in 0..keys {
        redis::cmd("SET").arg(format!("other-{key}")).arg("x".repeat(20_000)).exec(&mut connection).unwrap();
    }
    server.tell(&["SAVE"]);
    let limiter = limiter_on(&server.uri(""), OnStoreFailure::Local);
    let told = under_load(&limiter, |load| {
        load.decided_by_store(500);
        server.kill();
        load.failed(100);
        server.run();
        let is_loading = || server.info("persistence")["loading"] == "1";
        let is_told = || limiter.health().unwrap().last_error.unwrap().1.contains("LOADING");
        wait_until("the server's excuse", || is_told() || !is_loading());
        wait_until("the server", || !is_loading());
        check_return(scene, load.decided_by_store(500));
    });
    told.check(scene, &limiter);
    told.check_admitted(scene, 1);
}

#[test]
fn a_server_that_became_a_replica_while_its_name_leads_elsewhere() {
    let scene = "a failover";
    let (old, new) = (Server::start(&[]), Server::start(&[]));
    let relay = Relay::to(&old.address());
    let limiter = limiter_on(&relay.uri(""), OnStoreFailure::Local);
    let told = under_load(&limiter, |load| {
        load.decided_by_store(500);
        // The old connections stay open, and only the name tells where the new master is.
        old.tell(&["REPLICAOF", "127.0.0.1", &new.port.to_string()]);
        relay.lead_to(&new.address());
        check_return(scene, load.decided_by_store(500));
    });
    told.check(scene, &limiter);
    told.check_admitted(scene, 1);
    told.check_charges(scene, &new, 1);
}
