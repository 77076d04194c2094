//! The file goes away while processes decide: they meet again in a new one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use mirab::{Limiter, News, Store};

use crate::common::shm::Folder;
use crate::limiter;
use crate::workers::{self, Worker, may_go_on, tell};
use crate::wrong::{good, put};

/// They look every second; slow machines later.
const SOON: Duration = Duration::from_secs(15);

/// Decides until there are such news.
fn decide_until(limiter: &Limiter, part: &str) -> News {
    let begun = Instant::now();
    loop {
        assert!(limiter.allow("before", 1).is_ok());
        if let Some(news) = limiter.next_news()
            && news.text.contains(part)
        {
            return news;
        }
        assert!(begun.elapsed() < SOON, "no news of the file");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn decide(path: &str) {
    let limiter = limiter("1000000/hour", &open(path));
    let shared = crate::limiter("40/day", limiter.store());
    assert!(limiter.allow("before", 1).unwrap());
    tell("decides");
    while may_go_on() {
        let news = decide_until(&limiter, "removed");
        assert!(news.is_error && news.text.contains(path), "{news}");
        tell("news");
        assert!(may_go_on());
        tell(crate::taken(&shared, "key"));
        assert!(limiter.take_news().is_empty(), "the same news twice");
    }
}

fn open(path: &str) -> Store {
    crate::open(Path::new(path)).unwrap()
}

#[test]
fn all_go_on_in_one_new_file() {
    const TEST: &str = "removed::all_go_on_in_one_new_file";
    if let Some(role) = workers::role() {
        return decide(&role[0]);
    }
    let folder = Folder::new("removed");
    let path = folder.file("x");
    let name = path.to_str().unwrap();
    let mut all: Vec<Worker> = (0..4).map(|_| Worker::start(TEST, &[name])).collect();
    all.iter_mut().for_each(|it| assert_eq!(it.hears(), "decides"));
    for round in 0..3 {
        let before = fs::metadata(&path).unwrap().ino();
        if round == 1 {
            // Another one in its place, of a seed and with states of its own.
            put(&folder.file("other"), &good());
            fs::rename(folder.file("other"), &path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        all.iter_mut().for_each(Worker::go);
        all.iter_mut().for_each(|it| assert_eq!(it.hears(), "news"));
        assert_ne!(fs::metadata(&path).unwrap().ino(), before);
        all.iter_mut().for_each(Worker::go);
        let taken: Vec<u64> = all.iter_mut().map(|it| it.hears().parse().unwrap()).collect();
        assert_eq!(taken.iter().sum::<u64>(), 40, "round {round}: {taken:?}");
        assert_eq!(folder.names(), ["x"]);
    }
    all.into_iter().for_each(|it| drop(it.end()));
}

/// What lies in its place can be no store: decisions go on where they were, and it is said why.
#[test]
fn what_is_put_in_its_place_may_be_anything() {
    let folder = Folder::new("replaced");
    let path = folder.file("x");
    let limiter = limiter("1000000/30 days", &open(path.to_str().unwrap()));
    assert!(limiter.allow("key", 500).unwrap());
    fs::remove_file(&path).unwrap();
    put(&path, b"something else");
    let news = decide_until(&limiter, "no new one");
    assert!(news.is_error && news.text.contains("cut off"), "{news}");
    assert!(limiter.peek("key", 1).unwrap().used() > 400, "what was counted is still there");
    fs::remove_file(&path).unwrap();
    let news = decide_until(&limiter, "what it counted is gone");
    assert!(news.is_error && limiter.peek("key", 1).unwrap().used() < 400, "{news}");
}

/// The folder goes away with it, and comes back.
#[test]
fn without_a_folder_decisions_go_on() {
    let folder = Folder::new("no-folder");
    let inner = folder.file("inner");
    fs::create_dir(&inner).unwrap();
    let limiter = limiter("5/day", &open(inner.join("x").to_str().unwrap()));
    assert_eq!(crate::taken(&limiter, "key"), 5);
    fs::remove_dir_all(&inner).unwrap();
    decide_until(&limiter, "no new one");
    // It is looked for each second, and told once.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2_500) {
        assert!(!limiter.allow("key", 1).unwrap(), "what was counted still counts");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(limiter.take_news(), []);
    fs::create_dir(&inner).unwrap();
    decide_until(&limiter, "what it counted is gone");
    assert_eq!(crate::taken(&limiter, "key"), 5);
}

/// A process that is forked after the file was removed (a server that loads the app first does that again and again) decides
/// in the new one from the first.
#[test]
fn who_is_forked_looks_first() {
    let folder = Folder::new("forked");
    let path = folder.file("x");
    let limiter = limiter("10/day", &open(path.to_str().unwrap()));
    assert!(limiter.allow("key", 1).unwrap());
    fs::remove_file(&path).unwrap();
    // SAFETY: the child only decides, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_new = limiter.allow("key", 10).unwrap_or(false) && limiter.take_news().is_empty();
        // SAFETY: it ends at once.
        unsafe { libc::_exit(i32::from(!(is_new && path.exists()))) }
    }
    let mut status = 0;
    // SAFETY: it waits for the child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
}

/// What is written over the head of a file is noticed by those who use it, while it does them no harm.
#[test]
fn an_overwritten_file_is_told_of() {
    use std::os::unix::fs::FileExt;
    let folder = Folder::new("overwritten");
    let path = folder.file("x");
    let limiter = limiter("1000000/hour", &open(path.to_str().unwrap()));
    assert!(limiter.allow("before", 1).unwrap());
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[7; 64], 0).unwrap();
    let news = decide_until(&limiter, "was overwritten");
    assert!(news.is_error, "{news}");
    let health = limiter.health().unwrap();
    assert!(!health.ok && health.last_error.unwrap().1.contains("should be removed"));
    fs::remove_file(&path).unwrap();
    decide_until(&limiter, "was removed");
    assert!(limiter.health().unwrap().ok);
}

/// One that was moved away is given up as soon as there is another in its place.
#[test]
fn a_file_that_was_moved_away_is_left_for_its_successor() {
    let folder = Folder::new("moved");
    let path = folder.file("x");
    let limiter = limiter("1000000/hour", &open(path.to_str().unwrap()));
    assert!(limiter.allow("before", 1).unwrap());
    fs::rename(&path, folder.file("x.old")).unwrap();
    put(&path, &good());
    decide_until(&limiter, "removed");
}

/// Who only blocks, or forgets, blocks in the file that the others have.
#[test]
fn who_does_not_decide_notices_it_too() {
    let folder = Folder::new("blocks");
    let path = folder.file("x");
    let limiter = limiter("10/hour", &open(path.to_str().unwrap()));
    limiter.block("key", Duration::from_secs(60)).unwrap();
    fs::remove_file(&path).unwrap();
    let begun = Instant::now();
    while !path.exists() {
        limiter.block("key", Duration::from_secs(60)).unwrap();
        limiter.unblock("key").unwrap();
        limiter.reset("key").unwrap();
        assert!(begun.elapsed() < SOON);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// An app that closes all descriptors that it did not open itself, as a daemon does, goes on in the same file.
#[test]
fn a_descriptor_that_was_closed_is_opened_again() {
    let folder = Folder::new("closed");
    let path = folder.file("x");
    let limiter = limiter("10/day", &open(path.to_str().unwrap()));
    assert!(limiter.allow("key", 4).unwrap());
    // SAFETY: the child closes what it does not need, decides, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        (3..200).for_each(|descriptor| assert!(unsafe { libc::close(descriptor) } <= 0));
        let decision = limiter.acquire("key", 1);
        let is_shared = decision.is_ok_and(|it| !it.degraded() && it.remaining() == 5);
        // SAFETY: it ends at once.
        unsafe { libc::_exit(i32::from(!is_shared)) }
    }
    let mut status = 0;
    // SAFETY: it waits for the child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    assert_eq!(limiter.peek("key", 1).unwrap().remaining(), 5);
}
