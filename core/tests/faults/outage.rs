//! A server that is away: killed, frozen, not there yet.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use mirab::{ErrorKind, OnStoreFailure};

use crate::check_return;
use crate::common::load::{BOUND, Load, TOLERANCE, limiter_on, outage, under_load};
use crate::common::say;
use crate::common::server::Server;

/// A part of an outage that is long enough for a few probes.
const A_WHILE: Duration = Duration::from_millis(400);

/// Kills the server under load, and lets it run again, empty; how long decisions took to return to it.
fn kill_and_run_again(server: &mut Server, load: &Load<'_>) -> Duration {
    load.decided_by_store(500);
    server.kill();
    load.failed(500);
    load.go_on(A_WHILE);
    server.run();
    load.decided_by_store(500)
}

#[test]
fn killed_and_restarted() {
    let scene = "killed and restarted";
    let mut server = Server::start(&[]);
    let limiter = limiter_on(&server.uri(""), OnStoreFailure::Local);
    let losses = 2;
    let told = under_load(&limiter, |load| {
        for _ in 0..losses {
            check_return(scene, kill_and_run_again(&mut server, load));
        }
    });
    told.check(scene, &limiter);
    told.check_admitted(scene, losses);
    told.check_charges(scene, &server, losses);
}

#[test]
fn killed_where_everyone_is_to_be_admitted() {
    let scene = "killed, open";
    let mut server = Server::start(&[]);
    let limiter = limiter_on(&server.uri(""), OnStoreFailure::Open);
    let told = under_load(&limiter, |load| check_return(scene, kill_and_run_again(&mut server, load)));
    told.check(scene, &limiter);
    assert_eq!(told.instead[1].load(Relaxed), 0, "nobody is refused");
}

#[test]
fn killed_where_everyone_is_to_be_refused() {
    let scene = "killed, closed";
    let mut server = Server::start(&[]);
    let limiter = limiter_on(&server.uri(""), OnStoreFailure::Closed);
    let told = under_load(&limiter, |load| check_return(scene, kill_and_run_again(&mut server, load)));
    told.check(scene, &limiter);
    assert_eq!(told.instead[0].load(Relaxed), 0, "nobody is admitted");
    server.kill();
    (0..20).for_each(|_| assert!(!limiter.allow("k", 1).unwrap()));
    let refused = limiter.acquire("k", 1).unwrap();
    assert!(refused.degraded() && !refused.never(), "{refused:?}");
    let wait = refused.retry_after().unwrap();
    assert!(
        (Duration::from_micros(1)..=Duration::from_secs(1)).contains(&wait),
        "until the next probe: {wait:?}"
    );
}

#[test]
fn killed_where_it_is_to_be_an_error() {
    let scene = "killed, raise";
    let mut server = Server::start(&[]);
    let limiter = limiter_on(&server.uri(""), OnStoreFailure::Raise);
    let told = under_load(&limiter, |load| check_return(scene, kill_and_run_again(&mut server, load)));
    told.check_times(scene);
    assert_eq!(told.degraded.load(Relaxed), 0);
    assert_eq!(limiter.stats().errors, told.errors.load(Relaxed));
    let kind = told.first_error().unwrap().kind();
    assert!([ErrorKind::StoreUnavailable, ErrorKind::StoreTimeout].contains(&kind), "{kind:?}");
    told.check_charges(scene, &server, 1);
}

#[test]
fn frozen() {
    let scene = "frozen";
    let server = Server::start(&[]);
    let limiter = limiter_on(&server.uri(""), OnStoreFailure::Local);
    let told = under_load(&limiter, |load| {
        load.decided_by_store(500);
        server.freeze();
        load.failed(500);
        load.go_on(outage());
        server.thaw();
        check_return(scene, load.decided_by_store(500));
    });
    told.check(scene, &limiter);
    told.check_admitted(scene, 0);
    told.check_charges(scene, &server, 0);
}

#[test]
fn away_at_the_start() {
    let scene = "away at the start";
    let mut server = Server::planned(&[]);
    let limiter = limiter_on(&server.uri(""), OnStoreFailure::Local);
    let begun = Instant::now();
    assert!(limiter.acquire("first", 1).unwrap().degraded());
    say(format_args!("{scene}: the first call took {:?}", begun.elapsed()));
    assert!(begun.elapsed() < TOLERANCE * BOUND);
    let told = under_load(&limiter, |load| {
        load.failed(500);
        load.go_on(A_WHILE);
        server.run();
        check_return(scene, load.decided_by_store(500));
    });
    told.check_times(scene);
    told.check_admitted(scene, 0);
    told.check_charges(scene, &server, 0);
}
