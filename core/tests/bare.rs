//! Bare decisions: they tell, settle and complete as whole ones do.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::limiter;
use mirab::{BareDecision, ErrorKind, Limiter, Step, Store, Told};

const POLICY: &str = "5/minute; leaky_bucket: 4/minute queue 3; concurrency: 9 for 30s";

fn stores() -> [Store; 2] {
    [Store::open("memory:").unwrap(), common::redis_store().0]
}

fn used(limiter: &Limiter, key: &str) -> Vec<u64> {
    limiter.peek(key, 0).unwrap().standings().map(|standing| standing.used).collect()
}

#[test]
fn a_bare_decision_tells_what_a_whole_one_does() {
    for store in stores() {
        let (limiter, _) = limiter(POLICY, &store, 7);
        for cost in [0, 2, 1, 1, 3, 99] {
            let time = limiter.read_clock().unwrap();
            let peeked = limiter.peek_bare_at("bare", cost, time, |bare| bare).unwrap();
            let taken = limiter.acquire_bare_at("bare", cost, time, |bare| bare).unwrap();
            let whole = limiter.acquire("whole", cost).unwrap();
            assert_eq!(peeked.allowed(), taken.allowed());
            let said = |told: Told<'_>| format!("{:?} {:?}", told.decided(), told.retry_after());
            assert_eq!(said(limiter.tell(&taken)), said(whole.told()));
            let tell = |bare: BareDecision| said(limiter.tell(&bare));
            assert_eq!(limiter.peek_bare_at("told", cost, time, tell).unwrap(), said(limiter.tell(&peeked)));
            assert_eq!(limiter.acquire_bare_at("told", cost, time, tell).unwrap(), said(whole.told()));
            let completed = limiter.complete("bare", taken);
            assert_eq!((completed.key(), completed.allowed()), (&b"bare"[..], whole.allowed()));
        }
    }
}

#[test]
fn a_bare_decision_is_settled_once() {
    for store in stores() {
        let (limiter, _) = limiter("5/minute; concurrency: 9 for 30s", &store, 0);
        let time = limiter.read_clock().unwrap();
        let acquire = |cost| limiter.acquire_bare_at("k", cost, time, |bare| bare).unwrap();
        let first = acquire(2);
        assert_eq!([(); 2].map(|()| limiter.refund_bare_at("k", &first, time).unwrap()), [2, 0]);
        let second = acquire(3);
        limiter.commit_bare_at("k", &second, 1, time).unwrap();
        assert_eq!([(); 2].map(|()| limiter.release_bare_at("k", &second, time).unwrap()), [1, 0]);
        assert_eq!(used(&limiter, "k"), [1, 0]);
    }
}

#[test]
fn a_bare_decision_of_another_limiter_stays_its_owners() {
    let store = Store::open("memory:").unwrap();
    let (owner, _) = limiter(POLICY, &store, 0);
    let (other, _) = limiter("5/minute", &store, 0);
    let time = owner.read_clock().unwrap();
    let decision = owner.acquire_bare_at("k", 2, time, |bare| bare).unwrap();
    assert_eq!(other.refund_bare_at("k", &decision, time).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(owner.refund_bare_at("k", &decision, time).unwrap(), 2);
}

#[test]
fn many_keys_and_waiting_give_bare_decisions_too() {
    for store in stores() {
        let (limiter, clock) = limiter("2/minute; leaky_bucket: 2/minute queue 1", &store, 0);
        let time = limiter.read_clock().unwrap();
        let many = limiter.acquire_many_bare_at(&[("a", 2), ("b", 1), ("a", 1)], time).unwrap();
        let told: Vec<u64> = many.iter().map(|bare| limiter.tell(bare).remaining()).collect();
        assert_eq!(told, [0, 1, 0]);
        assert_eq!(limiter.refund_bare_at("b", &many[1], time).unwrap(), 1);

        let mut waiter = limiter.waiter("a", 1, Some(Duration::from_secs(60)));
        let Step::Done(bare) = waiter.step_bare().unwrap() else { panic!("a manual clock was slept on") };
        assert!(bare.allowed());
        assert!(clock.now_us() >= 30_000_000);
    }
}

#[test]
fn a_limit_is_told_by_its_place() {
    let (limiter, clock) = limiter(POLICY, &Store::open("memory:").unwrap(), 0);
    let decision = limiter.acquire("k", 3).unwrap();
    let told: Vec<(&str, u64)> =
        (0..3).map(|place| decision.told().standing(place)).map(|it| (it.name(), it.used)).collect();
    assert_eq!(told, decision.standings().map(|it| (it.name(), it.used)).collect::<Vec<_>>());
    limiter.block("k", Duration::from_secs(9)).unwrap();
    clock.advance_us(1_000_000).unwrap();
    let blocked = limiter.peek("k", 1).unwrap();
    for place in 0..3 {
        let block = blocked.told().standing(place);
        assert_eq!((block.name(), block.reset_after), ("block", Duration::from_secs(8)));
    }
}
