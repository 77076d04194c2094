//! Users who share a file by their group.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use mirab::{ErrorKind, Store};

use crate::common::say;
use crate::common::shm::{Folder, Shared};
use crate::workers::{self, Worker, tell};
use crate::{is_root, limiter, taken};

const GROUP: u32 = 54_321;

#[test]
fn mode_and_group_are_really_the_files() {
    // SAFETY: it only asks.
    let own = unsafe { libc::getegid() };
    let group = if is_root() { GROUP } else { own };
    for (parameters, mode, group) in [
        (String::new(), 0o600, own),
        ("?mode=600".into(), 0o600, own),
        ("?mode=660".into(), 0o660, own),
        (format!("?group={group}"), 0o660, group),
        (format!("?group={group}&mode=660"), 0o660, group),
    ] {
        let shared = Shared::new("mode");
        let store = Store::open(&shared.uri(&parameters)).unwrap();
        assert!(limiter("10/hour", &store).allow("key", 1).unwrap());
        let found = fs::metadata(&shared.path).unwrap();
        assert_eq!((found.mode() & 0o7777, found.gid()), (mode, group), "{parameters}");
    }
}

/// `mode=660` alone means the group that the process has: its users share, and nobody is let in by chance.
#[test]
fn a_file_for_a_group_is_one_only_where_that_is_said() {
    let shared = Shared::new("said");
    drop(Store::open(&shared.uri("?mode=660")).unwrap());
    let asked = Store::open(&shared.uri("?mode=660&timeout_ms=7")).map(|store| limiter("10/hour", &store));
    assert!(asked.unwrap().allow("key", 1).unwrap());
    let other = Shared::new("unsaid");
    drop(Store::open(&other.uri("")).unwrap());
    fs::set_permissions(&other.path, Permissions::from_mode(0o660)).unwrap();
    let renamed = Shared::new("renamed");
    fs::rename(&other.path, &renamed.path).unwrap();
    let error = Store::open(&renamed.uri("")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreDenied, "{error}");
    let error = Store::open(&renamed.uri("?mode=600&group=0")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUri, "{error}");
}

/// By path and by name: two users of a group have one file, a third has none.
#[test]
fn users_of_a_group_share_one_file() {
    const TEST: &str = "groups::users_of_a_group_share_one_file";
    if let Some(role) = workers::role() {
        match Store::open(&role[0]) {
            Ok(store) => tell(taken(&limiter("30/day", &store), "key")),
            Err(error) => tell(format_args!("{:?} {error}", error.kind())),
        }
        return;
    }
    if !is_root() {
        return say(format_args!("users of a group: only root can be several of them"));
    }
    let folder = Folder::new("group");
    fs::set_permissions(&folder.path, Permissions::from_mode(0o1777)).unwrap();
    let name = format!("test-{}", std::process::id());
    let named = Shared { path: format!("/dev/shm/mirab-g{GROUP}-1-{name}").into() };
    for uri in [
        format!("shm:{name}?group={GROUP}&max_keys=100"),
        format!("shm://{}?group={GROUP}&max_keys=100", folder.file("x").display()),
    ] {
        let start = |user| Worker::as_user(user, GROUP, TEST, &[&uri]);
        let all = [start(50_001), start(50_002), start(50_001)];
        let all = all.map(Worker::number);
        assert_eq!(all.iter().sum::<u64>(), 30, "{uri}: {all:?}");
        let other = Worker::as_user(50_003, 50_003, TEST, &[&uri]).end();
        assert!(other[0].starts_with("StoreDenied") && other[0].contains("of user 5000"), "{other:?}");
    }
    assert!(named.path.exists());
    // Who is of the group, or the owner, but does not ask for it, is told how.
    let path = format!("shm://{}?max_keys=100", folder.file("x").display());
    let apart = [50_001, 50_002].map(|user| Worker::as_user(user, GROUP, TEST, &[&path]).end());
    let denied = apart.iter().filter(|it| it[0].starts_with("StoreDenied") && it[0].contains("?group="));
    assert_eq!(denied.count(), 2, "{apart:?}");
    // One that cannot be given to the group is not made.
    let theirs = format!("shm://{}?group=1", folder.file("theirs").display());
    let told = Worker::as_user(50_001, GROUP, TEST, &[&theirs]).end();
    assert!(told[0].contains("group 1"), "{told:?}");
    assert_eq!(folder.names(), ["x"]);
}
