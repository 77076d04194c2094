//! Files that a URI names: a password, certificates, a key.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// More than any of them holds.
const MOST_BYTES: u64 = 1 << 20;

/// What a file holds. Only a regular one is read, and only so far: a pipe would hold the reader for ever,
/// and a device would never end.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it must be a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it must hold at most 1 MiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_small_regular_files_are_read() {
        let path = std::env::temp_dir().join(format!("mirab-file-{}", std::process::id()));
        std::fs::write(&path, "hunter2\n").unwrap();
        assert_eq!(read(&path).unwrap(), b"hunter2\n");
        std::fs::write(&path, vec![b'x'; (MOST_BYTES + 1) as usize]).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("1 MiB"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        for odd in ["/dev/zero", "/"] {
            assert!(read(Path::new(odd)).unwrap_err().to_string().contains("regular"), "{odd}");
        }
    }
}
