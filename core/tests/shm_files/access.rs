//! Paths that lead to no file, or to one of which others decide.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mirab::ErrorKind;

use crate::common::say;
use crate::common::shm::Folder;
use crate::workers::{self, Worker, tell};
use crate::wrong::{good, put};
use crate::{check_refused, is_root, open, user};

/// Someone else.
const OTHER: u32 = 54_321;

#[test]
fn what_is_no_file() {
    let folder = Folder::new("kinds");
    fs::create_dir(folder.file("folder")).unwrap();
    check_refused(&folder.file("folder"), ErrorKind::StoreCorrupt, user(), "is a folder");
    put(&folder.file("good"), &good());
    symlink(folder.file("good"), folder.file("link")).unwrap();
    check_refused(&folder.file("link"), ErrorKind::StoreDenied, user(), "symbolic link");
    symlink(folder.file("nothing"), folder.file("dangling")).unwrap();
    check_refused(&folder.file("dangling"), ErrorKind::StoreDenied, user(), "symbolic link");
    let _socket = UnixListener::bind(folder.file("socket")).unwrap();
    check_refused(&folder.file("socket"), ErrorKind::StoreCorrupt, user(), "is no file");
    assert!(!folder.file("nothing").exists());
    check_refused(Path::new("/dev/null"), ErrorKind::StoreCorrupt, 0, "is no file");
}

/// Whoever opens one that nobody reads must not wait for somebody.
#[test]
fn a_pipe_is_not_waited_for() {
    let folder = Folder::new("pipe");
    let path = folder.file("pipe");
    let name = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let (told, hears) = mpsc::channel();
    thread::spawn(move || {
        check_refused(&path, ErrorKind::StoreCorrupt, user(), "is no file");
        told.send(()).unwrap();
    });
    hears.recv_timeout(Duration::from_secs(30)).expect("it waits, or is another error");
}

#[test]
fn where_there_is_no_folder() {
    let folder = Folder::new("paths");
    put(&folder.file("file"), &good());
    let long = folder.file(&"x".repeat(300));
    for path in [folder.file("no/such/file"), folder.file("file/x"), long] {
        let error = open(&path).expect_err("no folder");
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        assert!(error.to_string().contains(&format!("{path:?}")), "{error}");
    }
    assert_eq!(folder.names(), ["file"]);
}

#[test]
fn what_others_may_write() {
    let (folder, good) = (Folder::new("modes"), good());
    let made = |name: &str, mode| {
        let path = folder.file(name);
        put(&path, &good);
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    };
    for mode in [0o602, 0o606, 0o622, 0o666, 0o777] {
        check_refused(&made(&format!("{mode:o}"), mode), ErrorKind::StoreDenied, user(), "by everybody");
    }
    assert!(open(&made("read", 0o644)).is_ok(), "others may look at it");
    if !is_root() {
        for mode in [0o000, 0o200, 0o400] {
            check_refused(
                &made(&format!("own {mode:o}"), mode),
                ErrorKind::StoreDenied,
                user(),
                "may not be",
            );
        }
        return say(format_args!("files of other users: only root can make them"));
    }
    let others = made("others", 0o600);
    chown(&others, Some(OTHER), Some(OTHER)).unwrap();
    check_refused(&others, ErrorKind::StoreDenied, OTHER, "is 0 (root)");
    check_refused(&others, ErrorKind::StoreDenied, OTHER, "?group=");
    // His group may write it, and this process did not ask to share it with a group.
    let groups = made("groups", 0o660);
    chown(&groups, None, Some(OTHER)).unwrap();
    check_refused(&groups, ErrorKind::StoreDenied, 0, "group 54321");
}

/// An ordinary user before files of root's.
#[test]
fn what_belongs_to_another_user() {
    const TEST: &str = "access::what_belongs_to_another_user";
    if let Some(role) = workers::role() {
        let path = Path::new(&role[0]);
        let error = open(path).expect_err("another's");
        return tell(format_args!("{:?} {error}", error.kind()));
    }
    if !is_root() {
        return say(format_args!("another user's process: only root can start one"));
    }
    let (folder, good) = (Folder::new("users"), good());
    fs::set_permissions(&folder.path, Permissions::from_mode(0o755)).unwrap();
    for (mode, says) in [(0o600, "may not be read and written"), (0o660, "may not be"), (0o646, "root")] {
        let path = folder.file(&format!("{mode:o}"));
        put(&path, &good);
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let told = Worker::as_user(OTHER, OTHER, TEST, &[path.to_str().unwrap()]).end().remove(0);
        assert!(told.starts_with("StoreDenied"), "{told}");
        for part in ["of user 0 (root)", "54321", says] {
            assert!(told.contains(part), "{mode:o}, {part}: {told}");
        }
    }
    // Nor may he make one here.
    let told = Worker::as_user(OTHER, OTHER, TEST, &[folder.file("new").to_str().unwrap()]).end().remove(0);
    assert!(told.starts_with("StoreDenied") && told.contains("/new"), "{told}");
}

/// Memory that is not there could end the process at any time.
#[test]
fn a_file_with_holes() {
    let (folder, good) = (Folder::new("holes"), good());
    let path = folder.file("x");
    put(&path, &good[..4_096]);
    fs::File::options().write(true).open(&path).unwrap().set_len(good.len() as u64).unwrap();
    if cfg!(target_os = "linux") {
        check_refused(&path, ErrorKind::StoreCorrupt, user(), "holes");
    }
}

#[test]
fn where_nothing_can_be_written() {
    const TEST: &str = "access::where_nothing_can_be_written";
    if let Some(role) = workers::role() {
        for name in ["good", "new"] {
            let path = Path::new(&role[0]).join(name);
            let error = open(&path).expect_err("read-only");
            assert_eq!(error.kind(), ErrorKind::StoreDenied, "{error}");
            assert!(error.to_string().contains(&format!("{path:?}")), "{error}");
        }
        return tell("so it is");
    }
    let Some(around) = workers::mounting() else { return };
    let folder = Folder::new("read-only");
    let from = Folder::new("from");
    put(&from.file("good"), &good());
    let command = format!(
        "mount -t tmpfs tmpfs \"$0\" && cp -p \"{}\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"",
        from.file("good").display()
    );
    let folder = folder.path.to_str().unwrap();
    let around: Vec<&str> = around.into_iter().chain(["sh", "-c", &command, folder]).collect();
    assert_eq!(Worker::of(&mut workers::command(&around, TEST, &[folder])).end(), ["so it is"]);
}
