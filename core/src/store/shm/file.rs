//! The file: made whole by whoever comes first, checked by everybody.
//!
//! It is made without a name, filled and really allocated, and then linked to its name, so that nobody
//! ever opens half of one, and whoever is killed while making it leaves nothing.

use std::fs;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::NonNull;
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Gid, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::layout::{self, Geometry, HEADER_WORDS, Header};
use super::mapped::{self, Mapped};
use super::owner;
use super::part::Part;
use super::settings::Settings;
use super::word::Word;
use super::{accounts, boot};
use crate::store::bucket;
use crate::{Error, ErrorKind, Result};

/// How often it is tried again, a millisecond apart, while others make, replace or remove the same file.
const TRIES: u32 = 1_000;

/// Opens the file that the settings name, or makes it.
pub(super) fn open(settings: &Settings) -> Result<Mapped> {
    let path = settings.path.as_path();
    for _ in 0..TRIES {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => {
                let stat = check(settings, &file)?;
                let mapping = Mapping::new(path, &file, stat.st_size)?;
                let (geometry, header) = layout::read_header(mapping.words())
                    .map_err(|error| wrong(path, error.kind(), &error.to_string()))?;
                // Who does not know which start of the machine this is takes nothing from those who do.
                if header.boot == boot::id() || boot::id() == boot::UNKNOWN {
                    let (file, words) = mapping.keep(file);
                    return Mapped::new(file, words, geometry, header);
                }
                // All that it says is of before the machine was started anew.
                if owner::lock_to_replace(&file) && is_named(path, &stat) {
                    fs::remove_file(path).map_err(|error| failed(path, "be removed", &error.to_string()))?;
                }
            }
            Err(Errno::NOENT) => match make(settings)? {
                Some(made) => return Ok(made),
                None => continue,
            },
            Err(errno) => return Err(refused(path, errno)),
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err(failed(path, "be opened", "others make and remove it again and again"))
}

/// Whether that name still leads to this file.
fn is_named(path: &Path, stat: &Stat) -> bool {
    rustix::fs::lstat(path).is_ok_and(|now| (now.st_dev, now.st_ino) == (stat.st_dev, stat.st_ino))
}

/// Whether the file has no name any more, or its name is another's; or somebody closed its descriptor.
pub(super) fn is_gone(mapped: &Mapped, path: &Path) -> bool {
    if !mapped.has_descriptor() {
        return true;
    }
    rustix::fs::fstat(mapped.file).is_ok_and(|stat| {
        let named = rustix::fs::lstat(path);
        // Where there is no such name (for a process that sees other folders, say) it is not another's.
        stat.st_nlink == 0
            || named.is_ok_and(|named| (named.st_dev, named.st_ino) != (stat.st_dev, stat.st_ino))
    })
}

/// That it is a file that only those can write who may share the limits, and of its whole length.
fn check(settings: &Settings, file: &OwnedFd) -> Result<Stat> {
    let path = settings.path.as_path();
    let stat = rustix::fs::fstat(file).map_err(|errno| refused(path, errno))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile {
        return Err(wrong(path, ErrorKind::StoreCorrupt, &format!("is no file: {kind:?}")));
    }
    let user = accounts::user();
    let is_the_groups = settings.group == Some(stat.st_gid) && stat.st_mode & 0o060 == 0o060;
    if stat.st_uid != user && !is_the_groups {
        let user = accounts::shown(user);
        let what = match settings.group {
            None => {
                format!("is not this process's user's, who is {user}: users share one by a group (?group=)")
            }
            Some(group) => format!("is not readable and writable for group {group}, nor of user {user}"),
        };
        return Err(wrong(path, ErrorKind::StoreDenied, &what));
    }
    if stat.st_mode & 0o002 != 0 {
        return Err(wrong(path, ErrorKind::StoreDenied, "can be written by everybody"));
    }
    let group = stat.st_gid;
    if stat.st_mode & 0o020 != 0 && settings.group != Some(group) {
        let what =
            format!("can be written by group {group}: users share one by their group (?group={group})");
        return Err(wrong(path, ErrorKind::StoreDenied, &what));
    }
    if stat.st_size < (HEADER_WORDS * 8) as i64 {
        let what = format!("is only {} bytes long: it was cut off, or is another's", stat.st_size);
        return Err(wrong(path, ErrorKind::StoreCorrupt, &what));
    }
    if stat.st_size % size_of::<Word>() as i64 != 0 {
        let what =
            format!("is {} bytes long, which are no whole words: it was cut off or extended", stat.st_size);
        return Err(wrong(path, ErrorKind::StoreCorrupt, &what));
    }
    check_system(path, file, &stat)?;
    Ok(stat)
}

/// That its file system is this machine's, and has its pages.
#[cfg(target_os = "linux")]
fn check_system(path: &Path, file: &OwnedFd, stat: &Stat) -> Result<()> {
    const TMPFS: u32 = 0x0102_1994;
    const NETWORK: [(u32, &str); 6] = [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x00c3_6400, "Ceph"),
        (0x5346_414f, "AFS"),
    ];
    let Ok(system) = rustix::fs::fstatfs(file) else { return Ok(()) };
    let kind = system.f_type as u32;
    if let Some((_, name)) = NETWORK.iter().find(|&&(number, _)| number == kind) {
        let what = format!("lies on {name}: other machines would not share it (name one on this machine)");
        return Err(wrong(path, ErrorKind::Unsupported, &what));
    }
    if kind == TMPFS && stat.st_blocks * 512 < stat.st_size {
        return Err(wrong(path, ErrorKind::StoreCorrupt, "is not wholly allocated: it has holes"));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn check_system(_: &Path, _: &OwnedFd, _: &Stat) -> Result<()> {
    Ok(())
}

/// A mapped file, until it is to be kept.
struct Mapping {
    address: NonNull<Word>,
    words: usize,
}

impl Mapping {
    fn new(path: &Path, file: &OwnedFd, size: i64) -> Result<Self> {
        let words = usize::try_from(size).unwrap_or(0) / size_of::<Word>();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let mapped = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), words * size_of::<Word>(), protection, flags, file, 0)
        };
        let mapped = mapped.map_err(|errno| failed(path, "be mapped", &errno.to_string()))?;
        let address =
            NonNull::new(mapped.cast()).ok_or_else(|| failed(path, "be mapped", "at no address"))?;
        Ok(Self { address, words })
    }

    fn words(&self) -> &[Word] {
        // SAFETY: the mapping has that many words, is aligned to a page, and is not taken away while this lives; a
        // word is an atomic, which other processes may change at any time, and any bits are one.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.words) }
    }

    /// From now on it stays, and the file stays open.
    fn keep(self, file: OwnedFd) -> (&'static OwnedFd, &'static [Word]) {
        let kept = ManuallyDrop::new(self);
        // SAFETY: as above, and now it is never taken away.
        let words = unsafe { std::slice::from_raw_parts(kept.address.as_ptr(), kept.words) };
        (Box::leak(Box::new(file)), words)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is this one's, and nothing is borrowed of it any more.
        let _ = unsafe { rustix::mm::munmap(self.address.as_ptr().cast(), self.words * size_of::<Word>()) };
    }
}

/// Makes the file; none when another was first.
fn make(settings: &Settings) -> Result<Option<Mapped>> {
    let path = settings.path.as_path();
    let folder = path.parent().unwrap_or(Path::new("/"));
    let geometry = Geometry::of(settings);
    let size = geometry.words() * size_of::<Word>();
    let (file, temporary) = nameless(folder, path)?;
    let made = fill(settings, file, size, &geometry);
    let linked = made.and_then(|mapped| {
        let linked = match &temporary {
            None => {
                let from = format!("/proc/self/fd/{}", mapped.file.as_raw_fd());
                rustix::fs::linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)
            }
            Some(from) => rustix::fs::linkat(CWD, from.as_path(), CWD, path, AtFlags::empty()),
        };
        match linked {
            Ok(()) => Ok(Some(mapped)),
            Err(Errno::EXIST) => Ok(None),
            Err(errno) => Err(refused(path, errno)),
        }
    });
    if let Some(temporary) = temporary {
        // It has its name now, or is not wanted.
        let _ = fs::remove_file(temporary);
    }
    linked
}

/// A file without a name; where there is no such thing, one of a name that nobody looks for.
fn nameless(folder: &Path, path: &Path) -> Result<(OwnedFd, Option<std::path::PathBuf>)> {
    let mode = Mode::RUSR | Mode::WUSR;
    #[cfg(target_os = "linux")]
    if Path::new("/proc/self/fd").is_dir() {
        match rustix::fs::open(folder, OFlags::RDWR | OFlags::CLOEXEC | OFlags::TMPFILE, mode) {
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
            Err(errno) => return Err(refused(path, errno)),
            Ok(file) => return Ok((file, None)),
        }
    }
    let [random, _] = bucket::random_seed();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{random:x}"));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(&temporary, flags, mode).map_err(|errno| refused(path, errno))?;
    Ok((file, Some(temporary)))
}

fn fill(settings: &Settings, file: OwnedFd, size: usize, geometry: &Geometry) -> Result<Mapped> {
    let path = settings.path.as_path();
    let allocated = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size as u64)
        .and_then(|()| rustix::fs::ftruncate(&file, size as u64));
    allocated.map_err(|errno| match errno {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::NOMEM => Error::new(
            ErrorKind::StoreUnavailable,
            format!(
                "the shared-memory file {path:?} needs {size} bytes, and there is no such room: make its file system \
                 larger (of a container: --shm-size), or max_keys or log_entries smaller"
            ),
        ),
        errno => refused(path, errno),
    })?;
    if let Some(group) = settings.group {
        rustix::fs::fchown(&file, None, Some(Gid::from_raw(group)))
            .map_err(|errno| failed(path, &format!("be given to group {group}"), &errno.to_string()))?;
    }
    rustix::fs::fchmod(&file, mode(settings.mode)).map_err(|errno| refused(path, errno))?;
    let (file, words) = Mapping::new(path, &file, size as i64)?.keep(file);
    let header = Header {
        max_keys: settings.max_keys as u64,
        seed: bucket::random_seed(),
        boot: boot::id(),
        offset_us: mapped::own_offset_us(),
    };
    layout::write_header(words, geometry, &header);
    (0..geometry.parts).filter_map(|index| Part::new(index, geometry, words)).for_each(|part| part.begin());
    Mapped::new(file, words, *geometry, header)
}

/// Of the owner alone, or of his group as well.
fn mode(settings: u32) -> Mode {
    let owner = Mode::RUSR | Mode::WUSR;
    if settings & 0o060 == 0 { owner } else { owner | Mode::RGRP | Mode::WGRP }
}

/// The error of a file that is not as it should be; it names the owner.
fn wrong(path: &Path, kind: ErrorKind, what: &str) -> Error {
    Error::new(kind, format!("the shared-memory file {path:?}{} {what}", of_whom(path)))
}

fn of_whom(path: &Path) -> String {
    let owner = fs::symlink_metadata(path).map(|found| accounts::shown(found.uid()));
    owner.map_or_else(|_| String::new(), |owner| format!(" of user {owner}"))
}

fn failed(path: &Path, what: &str, why: &str) -> Error {
    Error::new(ErrorKind::StoreUnavailable, format!("the shared-memory file {path:?} cannot {what}: {why}"))
}

fn refused(path: &Path, errno: Errno) -> Error {
    match errno {
        Errno::LOOP => wrong(path, ErrorKind::StoreDenied, "is a symbolic link, which is not followed"),
        Errno::NXIO => {
            wrong(path, ErrorKind::StoreCorrupt, "is no file: a socket, or of a device that is gone")
        }
        Errno::ISDIR => wrong(path, ErrorKind::StoreCorrupt, "is a folder"),
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            let user = accounts::shown(accounts::user());
            let what = format!("may not be read and written by this process's user, {user}: {errno}");
            wrong(path, ErrorKind::StoreDenied, &what)
        }
        errno => failed(path, "be opened", &errno.to_string()),
    }
}
