//! Files whose content is not what mirab wrote: an error when the store is opened, and the file stays as it
//! is.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mirab::{ErrorKind, Store};

use crate::anatomy::{self, Anatomy};
use crate::common::Random;
use crate::common::shm::{Folder, Shared};
use crate::{check_refused, limiter, open, user};

/// The bytes of a small file that is in order.
pub fn good() -> Vec<u8> {
    let shared = Shared::new("good");
    let limiter = limiter("10/hour", &open(&shared.path).unwrap());
    assert!(limiter.allow("key", 3).unwrap());
    fs::read(&shared.path).unwrap()
}

/// Writes a file that only this user may write.
pub fn put(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

fn check_corrupt(path: &Path, bytes: &[u8], says: &str) {
    put(path, bytes);
    check_refused(path, ErrorKind::StoreCorrupt, user(), says);
    assert!(fs::read(path).unwrap() == bytes, "{says}: the file is not as it was");
}

#[test]
fn a_copy_of_a_good_file_is_good() {
    let folder = Folder::new("copy");
    put(&folder.file("x"), &good());
    let limiter = limiter("10/hour", &open(&folder.file("x")).unwrap());
    assert_eq!(limiter.peek("key", 1).unwrap().remaining(), 7);
}

#[test]
fn one_that_was_cut_off_or_extended() {
    let (folder, good) = (Folder::new("length"), good());
    for length in [0, 7, 8, 4_095, 4_096, good.len() / 2, good.len() - 4_096, good.len() - 1] {
        check_corrupt(&folder.file(&format!("cut to {length}")), &good[..length], "cut off");
    }
    for more in [1, 7, 8, 4_096, 1 << 20] {
        let mut bytes = good.clone();
        bytes.resize(good.len() + more, 0);
        check_corrupt(&folder.file(&format!("longer by {more}")), &bytes, "extended");
    }
}

#[test]
fn one_of_something_else() {
    let (folder, length) = (Folder::new("else"), good().len());
    let mut random = Random(7);
    for (name, bytes) in [
        ("ones", vec![0xff; length]),
        ("zeros", vec![0; length]),
        ("random", (0..length / 8).flat_map(|_| random.next().to_le_bytes()).collect()),
        ("text", b"worker_processes auto;\n".repeat(1_000)),
    ] {
        check_corrupt(&folder.file(name), &bytes, "not a shared-memory store of mirab");
    }
}

/// No bit of what is said of the file can be another, and each failure gives back what it has opened.
#[test]
fn every_bit_of_the_header() {
    let (folder, good) = (Folder::new("bits"), good());
    let path = folder.file("x");
    let descriptors = || fs::read_dir("/dev/fd").unwrap().count();
    let before = descriptors();
    for bit in 0..16 * 64 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        put(&path, &bytes);
        let error = open(&path).expect_err("a flipped bit");
        let is_layout = (64..128).contains(&bit);
        let kind = if is_layout { ErrorKind::StoreMismatch } else { ErrorKind::StoreCorrupt };
        assert_eq!(error.kind(), kind, "bit {bit}: {error}");
        assert!(error.to_string().contains("of user"), "bit {bit}: {error}");
    }
    // Other tests open files at the same time.
    assert!(descriptors() < before + 200, "{before} descriptors became {}", descriptors());
    put(&path, &good);
    assert!(open(&path).is_ok());
}

/// Whoever may write the file can make a header that fits itself.
#[test]
fn impossible_numbers_that_are_signed() {
    let (folder, good) = (Folder::new("signed"), good());
    for at in 2..8 {
        let was = anatomy::word(&good, at);
        for value in
            [0, 1, was - 1, was + 1, was * 2, 3, 1 << 31, u64::from(u32::MAX), 1 << 40, 1 << 63, u64::MAX]
        {
            let path = folder.file(&format!("{at}-{value}"));
            put(&path, &anatomy::with(&good, at, value));
            match open(&path) {
                Err(error) => assert_eq!(error.kind(), ErrorKind::StoreCorrupt, "{at}, {value}: {error}"),
                Ok(store) => {
                    assert!(value == was, "word {at} may be {value}");
                    assert!(limiter("10/hour", &store).allow("key", 1).is_ok(), "{at}, {value}");
                }
            }
        }
    }
}

/// Sizes that fit one another, but are too small to work with.
#[test]
fn the_smallest_file_works() {
    let shared = Shared::new("smallest");
    let store = Store::open(&shared.uri("?max_keys=1&log_entries=1")).unwrap();
    let anatomy = Anatomy::of(&fs::read(&shared.path).unwrap());
    assert!(anatomy.parts == 1 && anatomy.slots >= 1 && anatomy.heads >= 1);
    for policy in ["2/hour", "sliding_log: 2/hour"] {
        let limiter = limiter(policy, &store);
        assert!((0..100).all(|key: u32| limiter.allow(key.to_be_bytes(), 1).is_ok()), "{policy}");
    }
}

#[test]
fn one_of_another_layout_stays_as_it_is() {
    let (folder, good) = (Folder::new("layout"), good());
    for layout in [0, 2, 7, u64::MAX] {
        let path = folder.file(&format!("{layout}"));
        let bytes = anatomy::with(&good, 1, layout);
        put(&path, &bytes);
        check_refused(&path, ErrorKind::StoreMismatch, user(), &format!("layout {layout}"));
        assert!(fs::read(&path).unwrap() == bytes);
    }
}
