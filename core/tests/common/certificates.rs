//! A certificate authority of the tests' own, made on the spot with openssl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Signs certificates; its files are gone when it is dropped.
pub struct Authority {
    folder: PathBuf,
}

/// A certificate and its key, as files.
pub struct Certificate {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("mirab-{}", super::fresh_prefix()));
        fs::create_dir(&folder).unwrap();
        let authority = Self { folder };
        // Nothing of the machine's own settings.
        fs::write(authority.file("settings"), "[req]\ndistinguished_name = name\n[name]\n").unwrap();
        let extensions = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"];
        authority.make("authority", &extensions, &[]);
        authority
    }

    /// Its own certificate: who trusts this one trusts all that it signs.
    pub fn certificate(&self) -> PathBuf {
        self.file("authority.pem")
    }

    /// A certificate for these names, such as `DNS:localhost,IP:127.0.0.1`.
    pub fn sign(&self, stem: &str, names: &str) -> Certificate {
        let (certificate, key) = (self.certificate(), self.file("authority.key"));
        let signed_by = ["-CA", text(&certificate), "-CAkey", text(&key)];
        let extensions = [&format!("subjectAltName={names}"), "basicConstraints=critical,CA:FALSE"];
        self.make(stem, &extensions, &signed_by);
        Certificate { certificate: self.file(&format!("{stem}.pem")), key: self.file(&format!("{stem}.key")) }
    }

    /// A path in its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn make(&self, stem: &str, extensions: &[&str], more: &[&str]) {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
        openssl.args(["-days", "2", "-subj", &format!("/CN=the tests' {stem}")]);
        openssl.arg("-config").arg(self.file("settings"));
        openssl.arg("-keyout").arg(self.file(&format!("{stem}.key")));
        openssl.arg("-out").arg(self.file(&format!("{stem}.pem")));
        extensions.iter().for_each(|extension| {
            openssl.args(["-addext", extension]);
        });
        let made = openssl.args(more).output().expect("openssl: see scripts/setup.sh");
        assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
