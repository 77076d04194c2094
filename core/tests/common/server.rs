//! A Redis of a scene's own, which the scene may stop, kill, fill and mistreat.

use std::collections::HashMap;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use super::fresh_prefix;

/// A server on a port of this machine that keeps nothing on disk; it ends with the scene.
pub struct Server {
    pub port: u16,
    dir: PathBuf,
    options: Vec<String>,
    environment: Vec<(String, String)>,
    password: Option<String>,
    child: Option<Child>,
}

impl Server {
    /// A server that runs.
    pub fn start(options: &[&str]) -> Self {
        let mut server = Self::planned(options);
        server.run();
        server
    }

    /// A server that does not run yet: only its port is known.
    pub fn planned(options: &[&str]) -> Self {
        let dir = env::temp_dir().join(format!("mirab-{}-{}", process::id(), fresh_prefix()));
        fs::create_dir(&dir).unwrap();
        let password = options.iter().skip_while(|&&option| option != "--requirepass").nth(1);
        Self {
            port: free_port(),
            dir,
            options: options.iter().map(ToString::to_string).collect(),
            environment: Vec::new(),
            password: password.map(ToString::to_string),
            child: None,
        }
    }

    /// Runs it in this environment, too.
    pub fn set_environment(&mut self, name: &str, value: &Path) {
        self.environment.push((name.to_owned(), value.to_str().unwrap().to_owned()));
    }

    /// Where its files are, and other files may be.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts it, on the same port as before, and waits until it listens: it may still be loading.
    pub fn run(&mut self) {
        let mut command = Command::new(program());
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--loglevel", "warning", "--dir"]).arg(&self.dir).args(&self.options);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: between fork and exec only a system call is made: the server ends when the thread that
        // runs the scene does, however that ends.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut child = command.spawn().expect("redis-server can be started");
        let begun = Instant::now();
        while !self.is_ours(child.id()) {
            assert_eq!(child.try_wait().unwrap(), None, "redis-server ended: is port {} taken?", self.port);
            assert!(begun.elapsed() < Duration::from_secs(30), "redis-server does not answer");
            thread::sleep(Duration::from_millis(2));
        }
        self.child = Some(child);
    }

    /// Ends it as a crash does; what it held is lost.
    pub fn kill(&mut self) {
        let mut child = self.child.take().expect("the server runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Stops it where it stands: the kernel still takes connections for it.
    pub fn freeze(&self) {
        self.signal(libc::SIGSTOP);
    }

    pub fn thaw(&self) {
        self.signal(libc::SIGCONT);
    }

    /// Its URI, with parameters and a prefix of its own.
    pub fn uri(&self, parameters: &str) -> String {
        self.uri_as("", parameters)
    }

    /// As [`uri`](Self::uri), with `USER:PASSWORD@`.
    pub fn uri_as(&self, who: &str, parameters: &str) -> String {
        let prefix = fresh_prefix();
        format!("redis://{who}127.0.0.1:{}?prefix={prefix}{parameters}", self.port)
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A connection to it, with every right.
    pub fn raw(&self) -> redis::Connection {
        self.connect().unwrap()
    }

    /// Has it execute a command.
    pub fn tell(&self, command: &[&str]) {
        redis::cmd(command[0]).arg(&command[1..]).exec(&mut self.raw()).unwrap();
    }

    /// What a section of INFO says.
    pub fn info(&self, section: &str) -> HashMap<String, String> {
        let text: String = redis::cmd("INFO").arg(section).query(&mut self.raw()).unwrap();
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
    }

    /// How often the deciding script was called, by its digest or its source: those calls not counted that
    /// were answered with an error, of which none took anything.
    pub fn calls(&self) -> u64 {
        let stats = self.info("commandstats");
        let of = |command: &str, field: &str| {
            let fields = stats.get(&format!("cmdstat_{command}")).map_or("", String::as_str);
            let value = fields.split(',').find_map(|it| it.strip_prefix(field)?.strip_prefix('='));
            value.map_or(0, |value| value.parse::<u64>().unwrap())
        };
        let done = |command| of(command, "calls") - of(command, "failed_calls");
        done("evalsha") + done("eval")
    }

    fn connect(&self) -> redis::RedisResult<redis::Connection> {
        let who = self.password.as_ref().map_or(String::new(), |password| format!(":{password}@"));
        let client = redis::Client::open(format!("redis://{who}127.0.0.1:{}", self.port))?;
        client.get_connection_with_timeout(Duration::from_secs(10))
    }

    /// Whether who answers on the port is that process, and not another server.
    fn is_ours(&self, process: u32) -> bool {
        let Ok(mut connection) = self.connect() else { return false };
        let info = redis::cmd("INFO").arg("server").query::<String>(&mut connection);
        info.is_ok_and(|info| info.lines().any(|line| line.trim() == format!("process_id:{process}")))
    }

    fn signal(&self, signal: i32) {
        let child = self.child.as_ref().expect("the server runs");
        // SAFETY: a child of ours, which was not waited for.
        assert_eq!(unsafe { libc::kill(child.id().cast_signed(), signal) }, 0);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The server's program. That of a setup of the house is named from the root of the repository.
fn program() -> PathBuf {
    let named = env::var("MIRAB_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned());
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&named);
    if named.contains('/') && beside.exists() { beside } else { named.into() }
}

/// A port below those that the kernel gives to outgoing connections: one of these would be taken by
/// chance while the server is down, even by a client that looks for it.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = process::id() * 37;
    loop {
        let number = first + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (number % 12_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
