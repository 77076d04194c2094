//! Processes that are stopped at any instant, and go on later: the others wait for as long as was said, and
//! nobody takes from them what they hold.

use std::thread;
use std::time::{Duration, Instant};

use mirab::{ErrorKind, Limiter, OnStoreFailure, Policy, Store};

use crate::common::say;
use crate::common::shm::Shared;
use crate::crew::{Crew, role, signal};
use crate::hammer::{Scene, WORKERS, of_lists, of_numbers};
use crate::tally::{Count, Tally};
use crate::{limiter, until};

fn one_after_the_other(scene: &Scene) {
    let (shared, tally) = (Shared::new("stopped"), Tally::new());
    let uri = shared.uri(scene.file);
    let limiter = limiter(scene.policy, &uri);
    let mut told = 0;
    let mut stops = 0;
    while stops < 50 {
        let role = role("hammers", &uri, &tally, scene.policy, scene.keys);
        let mut crew = Crew::new(role, &tally, WORKERS / 2);
        while stops < 50 && tally.get(Count::Key) < scene.keys {
            thread::sleep(Duration::from_micros(crew.random.below(3_000)));
            let place = crew.random.below(crew.workers.len() as u64) as usize;
            signal(&crew.workers[place], libc::SIGSTOP);
            thread::sleep(Duration::from_millis(30));
            signal(&crew.workers[place], libc::SIGCONT);
            stops += 1;
        }
        // Nobody was killed: nothing is lost.
        assert_eq!(crew.end(), 0);
        told += scene.check(&limiter, &tally, 0);
        scene.clear(&limiter, &tally);
    }
    say(format_args!("{}: {told} told while others were stopped", scene.policy));
}

#[test]
fn who_is_stopped_goes_on_where_it_was() {
    one_after_the_other(&of_numbers("1000/365 days"));
    one_after_the_other(&of_lists("400/365 days; sliding_log: 1000/hour"));
}

/// Long enough that only a process that is stopped can be meant, on a machine with other things to do.
const TIMEOUT: Duration = Duration::from_millis(50);

/// Asks until a process that is stopped was in the way; the answer to that.
fn asks_beside_one_that_is_stopped(limiter: &Limiter, crew: &mut Crew<'_>) -> mirab::Result<mirab::Decision> {
    for _ in 0..5_000 {
        thread::sleep(Duration::from_micros(crew.random.below(2_000)));
        signal(&crew.workers[0], libc::SIGSTOP);
        // It stops a little later than it is told to.
        thread::sleep(Duration::from_micros(500));
        let begun = Instant::now();
        let asked = limiter.acquire(0_u64.to_be_bytes(), 1);
        let took = begun.elapsed();
        signal(&crew.workers[0], libc::SIGCONT);
        assert!(took < 10 * TIMEOUT, "{took:?}");
        let was_in_the_way = asked.as_ref().map_or(true, |it| it.degraded());
        if was_in_the_way {
            // Sooner where it still held what was waited for before.
            return asked;
        }
        assert!(asked.unwrap().allowed());
        crew.tally.add(Count::Taken, 1);
    }
    panic!("it never held anything when it was stopped");
}

fn beside_one_that_is_stopped(policy: &str) {
    let (shared, tally) = (Shared::new("waiting"), Tally::new());
    let uri = shared.uri("?max_keys=200&log_entries=131072&timeout_ms=50");
    let [raising, degrading] = [OnStoreFailure::Raise, OnStoreFailure::Local].map(|choice| {
        let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(Store::open(&uri).unwrap());
        builder.on_store_failure(choice).build().unwrap()
    });
    // The worker itself is stopped for longer than it would wait; nobody else holds anything then.
    let mut crew = Crew::new(role("hammers", &uri, &tally, policy, 1), &tally, 1);
    until("the worker's first decision", || tally.get(Count::Begun) > 0);
    let begun = Instant::now();
    let error = asks_beside_one_that_is_stopped(&raising, &mut crew).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreTimeout, "{error}");
    assert!(begun.elapsed() >= TIMEOUT);
    let decision = asks_beside_one_that_is_stopped(&degrading, &mut crew).unwrap();
    assert!(decision.degraded() && decision.allowed());
    assert_eq!(crew.end(), 0);
    let used = raising.peek(0_u64.to_be_bytes(), 1).unwrap().used();
    assert_eq!(used, tally.told(0) + tally.get(Count::Taken), "{policy}");
}

#[test]
fn who_waits_for_one_that_is_stopped_is_told() {
    beside_one_that_is_stopped("fixed_window: 4000000000/365 days from first");
    beside_one_that_is_stopped(
        "fixed_window: 4000000000/365 days from first; sliding_window: 4000000000/365 days",
    );
    beside_one_that_is_stopped("sliding_log: 4000000000/hour buckets 60");
}

/// Everybody waits at the same time, and not one after the other.
#[test]
fn many_who_wait_for_one_that_is_stopped_are_told_as_soon() {
    let policy = "fixed_window: 4000000000/365 days from first";
    let (shared, tally) = (Shared::new("many"), Tally::new());
    let uri = shared.uri("?max_keys=200&timeout_ms=50");
    let limiter = limiter(policy, &uri);
    let mut crew = Crew::new(role("hammers", &uri, &tally, policy, 1), &tally, 1);
    until("the worker's first decision", || tally.get(Count::Begun) > 0);
    let mut told = 0;
    for _ in 0..5_000 {
        thread::sleep(Duration::from_micros(crew.random.below(1_000)));
        signal(&crew.workers[0], libc::SIGSTOP);
        thread::sleep(Duration::from_micros(500));
        // One of them finds out whether somebody is in the way, and then the others ask.
        let is_in_the_way = limiter.allow(0_u64.to_be_bytes(), 1).is_err();
        if is_in_the_way {
            told += 1;
            // Once was long enough for the same one.
            let asked_again = (0..3).map(|_| {
                let begun = Instant::now();
                assert!(limiter.allow(0_u64.to_be_bytes(), 1).is_err());
                begun.elapsed()
            });
            assert!(asked_again.min().unwrap() < TIMEOUT);
            thread::scope(|scope| {
                for _ in 0..24 {
                    scope.spawn(|| {
                        let begun = Instant::now();
                        assert!(limiter.allow(0_u64.to_be_bytes(), 1).is_err());
                        assert!(begun.elapsed() < 10 * TIMEOUT, "{:?}", begun.elapsed());
                    });
                }
            });
        }
        signal(&crew.workers[0], libc::SIGCONT);
        if told == 3 {
            break;
        }
    }
    assert_eq!(told, 3, "it held nothing when it was stopped");
    assert_eq!(crew.end(), 0);
}

/// It is told once, and once that it is over; meanwhile the health says so.
#[test]
fn who_looks_after_it_hears_of_one_that_is_stopped() {
    let policy = "fixed_window: 4000000000/365 days from first";
    let (shared, tally) = (Shared::new("heard"), Tally::new());
    let uri = shared.uri("?max_keys=200&timeout_ms=50");
    let limiter = limiter(policy, &uri);
    let mut crew = Crew::new(role("hammers", &uri, &tally, policy, 1), &tally, 1);
    until("the worker's first decision", || tally.get(Count::Begun) > 0);
    assert!(limiter.take_news().is_empty() && limiter.health().unwrap().ok);
    let error = asks_beside_one_that_is_stopped(&limiter, &mut crew).unwrap_err();
    let health = limiter.health().unwrap();
    assert_eq!((health.ok, health.circuit, health.opened), (false, "open", 1));
    assert_eq!(health.last_error, Some((ErrorKind::StoreTimeout, error.to_string())));
    until("a decision", || limiter.allow(0_u64.to_be_bytes(), 1).is_ok());
    let health = limiter.health().unwrap();
    assert_eq!((health.ok, health.circuit, health.opened), (true, "closed", 1));
    let told: Vec<(String, bool)> =
        limiter.take_news().into_iter().map(|news| (news.text, news.is_error)).collect();
    assert!(told[0].0.contains("does not decide about some keys") && told[0].1, "{told:?}");
    assert!(told[1].0.contains("decides again") && !told[1].1, "{told:?}");
    assert_eq!(crew.end(), 0);
}
