//! Who makes the file: all of it or nothing, once.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use mirab::{ErrorKind, Store};

use crate::anatomy;
use crate::common::shm::Folder;
use crate::common::{Random, number};
use crate::workers::{self, Worker, tell, wait_until};
use crate::wrong::{good, put};
use crate::{limiter, open, taken};

const MANY: usize = 16;
const ROUNDS: usize = 50;

#[test]
fn sixteen_processes_at_once_make_one_file() {
    const TEST: &str = "creation::sixteen_processes_at_once_make_one_file";
    if let Some(role) = workers::role() {
        let begun: u64 = role[1].parse().unwrap();
        for round in 0..ROUNDS {
            wait_until(&(begun + 20_000 * round as u64).to_string());
            let limiter = limiter("50/day", &open(&Path::new(&role[0]).join(round.to_string())).unwrap());
            tell(taken(&limiter, "key"));
        }
        return;
    }
    let folder = Folder::new("at-once");
    let begin = workers::instant(Duration::from_secs(1));
    let role = [folder.path.to_str().unwrap(), &begin];
    let all: Vec<Worker> = (0..MANY).map(|_| Worker::start(TEST, &role)).collect();
    let all: Vec<Vec<String>> = all.into_iter().map(Worker::end).collect();
    for round in 0..ROUNDS {
        let sum: u64 = all.iter().map(|told| told[round].parse::<u64>().unwrap()).sum();
        assert_eq!(sum, 50, "round {round}: {all:?}");
    }
    assert_eq!(folder.names().len(), ROUNDS, "{:?}", folder.names());
}

/// Killed at whatever instant, it leaves a whole file or none, and nothing beside it.
#[test]
fn who_is_killed_while_making_it_leaves_nothing() {
    const TEST: &str = "creation::who_is_killed_while_making_it_leaves_nothing";
    const PARAMETERS: &str = "?max_keys=20000&log_entries=64";
    if let Some(role) = workers::role() {
        tell("it begins");
        for file in 0.. {
            Store::open(&format!("shm://{}/{file}{PARAMETERS}", role[0])).unwrap();
        }
    }
    let mut random = Random(11);
    let mut most = 0;
    for round in 0..number("MIRAB_KILLS", 20) {
        let folder = Folder::new("killed");
        let mut worker = Worker::start(TEST, &[folder.path.to_str().unwrap()]);
        worker.hears();
        thread::sleep(Duration::from_micros(random.below(30_000)));
        worker.kill();
        let names = folder.names();
        most = most.max(names.len());
        for name in names.iter().map(String::as_str).chain(["next"]) {
            assert!(name == "next" || name.parse::<u32>().is_ok(), "round {round} left {name:?}");
            let store = Store::open(&format!("shm://{}{PARAMETERS}", folder.file(name).display())).unwrap();
            assert_eq!(taken(&limiter("3/day", &store), "key"), 3, "round {round}, {name}");
        }
    }
    assert!(most > 0, "no file was ever made");
}

/// A file that does not fit is none: its bytes are told, and given back.
#[test]
fn without_room_nothing_is_left() {
    const TEST: &str = "creation::without_room_nothing_is_left";
    if let Some(role) = workers::role() {
        let folder = Path::new(&role[0]);
        let before = room(folder);
        let path = folder.join("x");
        for _ in 0..3 {
            let error = Store::open(&format!("shm://{}", path.display())).expect_err("no room");
            assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
            let text = error.to_string();
            let bytes = text.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).max();
            assert!(bytes.is_some_and(|bytes| bytes > 2_000_000) && text.contains("bytes"), "{text}");
            for part in ["max_keys", "--shm-size", &format!("{path:?}")] {
                assert!(text.contains(part), "{part}: {text}");
            }
            assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
            assert_eq!(room(folder), before);
        }
        // A smaller one fits.
        assert_eq!(taken(&limiter("3/day", &open(&path).unwrap()), "key"), 3);
        return tell("so it is");
    }
    let Some(around) = workers::mounting() else { return };
    let folder = Folder::new("small");
    let folder = folder.path.to_str().unwrap();
    let mount = "mount -t tmpfs -o size=1m tmpfs \"$0\" && exec \"$@\"";
    let around: Vec<&str> = around.into_iter().chain(["sh", "-c", mount, folder]).collect();
    assert_eq!(Worker::of(&mut workers::command(&around, TEST, &[folder])).end(), ["so it is"]);
}

/// Free blocks and files of a file system.
fn room(folder: &Path) -> (u64, u64) {
    let folder = std::ffi::CString::new(folder.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with a zero, and all fields are integers.
    unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        assert_eq!(libc::statvfs(folder.as_ptr(), &raw mut found), 0);
        (found.f_bfree as u64, found.f_ffree as u64)
    }
}

#[test]
fn what_was_before_the_machine_was_started_anew_counts_no_more() {
    const TEST: &str = "creation::what_was_before_the_machine_was_started_anew_counts_no_more";
    if let Some(role) = workers::role() {
        wait_until(&role[1]);
        return tell(taken(&limiter("10/hour", &open(Path::new(&role[0])).unwrap()), "key"));
    }
    let folder = Folder::new("boot");
    let mut old = good();
    anatomy::of_an_earlier_boot(&mut old);
    for round in 0..10 {
        let path = folder.file("x");
        put(&path, &old);
        let begin = workers::instant(Duration::from_millis(300));
        let start = |_| Worker::start(TEST, &[path.to_str().unwrap(), &begin]);
        let all: Vec<Worker> = (0..8).map(start).collect();
        let all: Vec<u64> = all.into_iter().map(Worker::number).collect();
        // Of the old one 7 were left.
        assert_eq!(all.iter().sum::<u64>(), 10, "round {round}: {all:?}");
        assert_eq!(folder.names(), ["x"]);
        fs::remove_file(path).unwrap();
    }
    // One process alone, and what it had opened for it is given back.
    let path = folder.file("alone");
    put(&path, &old);
    assert_eq!(taken(&limiter("10/hour", &open(&path).unwrap()), "key"), 10);
    assert!(fs::read(&path).unwrap() != old);
}

/// A process that sees no /proc does not know of which start of the machine a file is, and cannot make one without a
/// name: it shares the others' file, and leaves theirs and its own whole.
#[test]
fn without_proc_there_is_one_file_too() {
    const TEST: &str = "creation::without_proc_there_is_one_file_too";
    if let Some(role) = workers::role() {
        assert!(role.len() == 1 || !Path::new("/proc/self").exists());
        return tell(taken_of(&role[0], 4));
    }
    let Some(around) = workers::mounting() else { return };
    let folder = Folder::new("no-proc");
    let hidden = ["sh", "-c", "mount -t tmpfs tmpfs /proc && exec \"$0\" \"$@\""];
    let around: Vec<&str> = around.into_iter().chain(hidden).collect();
    for first_sees in [true, false] {
        let path = folder.file(if first_sees { "seen" } else { "unseen" });
        let name = path.to_str().unwrap();
        let take = |sees: bool| {
            let (around, role) =
                if sees { (&[][..], &[name][..]) } else { (&*around, &[name, "without"][..]) };
            Worker::of(&mut workers::command(around, TEST, role)).number()
        };
        let mut all = vec![take(first_sees)];
        if !first_sees {
            // Of it nobody else can say whether it is of now: it is replaced, once.
            assert_eq!((all[0], take(true)), (4, 4));
            all = vec![take(true)];
            all.push(take(false));
            assert_eq!(all, [4, 2]);
        } else {
            all.extend([take(false), take(true), take(false)]);
            assert_eq!(all, [4, 4, 2, 0]);
        }
    }
    assert_eq!(folder.names(), ["seen", "unseen"]);
}

/// Of ten a day, so many.
fn taken_of(path: &str, most: u64) -> usize {
    let limiter = limiter("10/day", &open(Path::new(path)).unwrap());
    (0..most).filter(|_| limiter.allow("key", 1).unwrap()).count()
}
