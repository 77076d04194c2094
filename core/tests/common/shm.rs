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
