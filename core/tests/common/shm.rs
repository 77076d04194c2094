//! Shared-memory files for tests, each removed at its end.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use mirab::Store;

/// A file of its own in the platform's folder.
pub struct Shared {
    pub path: PathBuf,
}

impl Shared {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mirab-test-{}-{count}-{name}", std::process::id());
        let folder = if cfg!(target_os = "linux") { "/dev/shm" } else { "/tmp" };
        Self { path: PathBuf::from(folder).join(name) }
    }

    pub fn uri(&self, parameters: &str) -> String {
        format!("shm://{}{parameters}", self.path.display())
    }

    /// A small one, as most tests need.
    pub fn store(&self) -> Store {
        Store::open(&self.uri("?max_keys=4096&log_entries=64&timeout_ms=5000")).unwrap()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A folder of its own there, removed with all that is in it.
pub struct Folder {
    pub path: PathBuf,
}

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = Shared::new(name).path.clone();
        std::fs::create_dir(&path).unwrap();
        Self { path }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// What lies in it, in order.
    pub fn names(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.path).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
