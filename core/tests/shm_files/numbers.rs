//! Processes that ask for different numbers of one file: it stays as the first has made it.

use std::fs;

use mirab::{ErrorKind, Limiter, Store};

use crate::common::shm::Shared;
use crate::limiter;
use crate::workers::{self, Worker, tell};

fn news(limiter: &Limiter) -> Vec<String> {
    limiter.take_news().into_iter().map(|news| news.text).collect()
}

#[test]
fn another_max_keys_keeps_the_file_and_is_told_once() {
    const TEST: &str = "numbers::another_max_keys_keeps_the_file_and_is_told_once";
    if let Some(role) = workers::role() {
        let limiter = limiter("10/hour", &Store::open(&role[0]).unwrap());
        tell(limiter.allow("key", 1).unwrap());
        let news = limiter.take_news();
        return news.iter().for_each(|news| tell(format_args!("{} {}", news.is_error, news.text)));
    }
    let shared = Shared::new("numbers");
    let store = Store::open(&shared.uri("?max_keys=500&log_entries=32")).unwrap();
    let own = limiter("10/hour", &store);
    assert_eq!(own.acquire("key", 4).unwrap().remaining(), 6);
    assert!(news(&own).is_empty());
    let length = || fs::metadata(&shared.path).unwrap().len();
    let before = length();

    let told = |parameters: &str| Worker::start(TEST, &[&shared.uri(parameters)]).end();
    assert_eq!(told("?max_keys=500&log_entries=32"), ["true"]);
    // What is rounded up to the same is the same.
    assert_eq!(told("?max_keys=500&log_entries=20"), ["true"]);
    let other = told("?max_keys=70000&log_entries=32");
    assert!(
        matches!(&*other, [admitted, news] if admitted == "true" && news.starts_with("false ")),
        "{other:?}"
    );
    assert!(
        other[1].contains("500") && other[1].contains("70000") && other[1].contains("max_keys"),
        "{other:?}"
    );
    let both = told("?max_keys=1&log_entries=4096");
    assert_eq!(both.len(), 3, "{both:?}");
    assert!(
        both[2].contains("log_entries") && both[2].contains("32") && both[2].contains("4096"),
        "{both:?}"
    );
    assert_eq!((length(), own.peek("key", 1).unwrap().remaining()), (before, 2));

    // In this process it is open already.
    let again = Store::open(&shared.uri("?max_keys=501&log_entries=32")).unwrap();
    let same = limiter("10/hour", &again);
    assert_eq!(same.peek("key", 1).unwrap().remaining(), 2);
    let told = news(&same);
    assert!(told.len() == 1 && told[0].contains("501") && told[0].contains("500"), "{told:?}");
    drop(Store::open(&shared.uri("?max_keys=500&log_entries=32")).unwrap());
    assert!(news(&same).is_empty() && news(&own).is_empty());
}

#[test]
fn a_list_that_does_not_fit_is_refused_when_the_limiter_is_made() {
    let shared = Shared::new("unsupported");
    let store = Store::open(&shared.uri("?max_keys=64&log_entries=64")).unwrap();
    let made = |policy: &str| {
        Limiter::builder(mirab::Policy::parse(policy).unwrap()).store(store.clone()).build().map(|_| ())
    };
    for (policy, write) in [
        ("sliding_log: 65/hour", 128),
        ("sliding_log: 1000/hour", 1_024),
        ("concurrency: 33 for 1h", 128),
        ("10/second; sliding_log: 129/day", 256),
        ("sliding_log: 600/hour buckets 300", 128),
        ("sliding_log: 64/hour; sliding_log: 64/day; sliding_log: 64/minute", 128),
    ] {
        let error = made(policy).expect_err(policy);
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{policy}: {error}");
        let text = error.to_string();
        assert!(text.contains(&format!("?log_entries={write}")), "{policy}: {text}");
        assert!(text.contains("log_entries=64"), "{policy}: {text}");
    }
    for (policy, most) in [
        ("sliding_log: 64/hour", 64),
        ("concurrency: 32 for 1h", 32),
        ("sliding_log: 64/hour; sliding_log: 64/day", 64),
        ("sliding_log: 600/hour buckets 200", 600),
        ("1000000/hour", 1_000),
    ] {
        assert_eq!(made(policy), Ok(()), "{policy}");
        let limiter = limiter(policy, &store);
        let admitted = (0..1_000).filter(|_| limiter.allow(policy, 1).unwrap()).count();
        assert_eq!(admitted, most, "{policy}: all of it has its room");
    }
}
