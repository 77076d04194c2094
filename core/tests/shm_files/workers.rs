//! Other processes: this program once more, started for one test, which it finds out by [`role`].

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::common::say;

/// What the process is to do, where it is one of these.
pub fn role() -> Option<Vec<String>> {
    let role = std::env::var("MIRAB_WORKER").ok()?;
    Some(role.split('|').map(str::to_owned).collect())
}

/// Tells the test that started this process.
pub fn tell(what: impl std::fmt::Display) {
    let mut out = std::io::stdout();
    out.write_all(format!("\ntold: {what}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// This program, to do its part of `test`; `around` is what it is started by.
pub fn command(around: &[&str], test: &str, role: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = match around {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    prepare(&mut command, test, role);
    command
}

fn prepare(command: &mut Command, test: &str, role: &[&str]) {
    command.args(["--exact", test, "--nocapture", "--quiet", "--test-threads=1"]);
    command.env("MIRAB_WORKER", role.join("|"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// Such a process; killed when nobody asks for it any more.
pub struct Worker(Child);

impl Worker {
    pub fn start(test: &str, role: &[&str]) -> Self {
        Self(command(&[], test, role).spawn().unwrap())
    }

    pub fn of(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    /// One of another user and group, of no other groups: only root can start it.
    pub fn as_user(user: u32, group: u32, test: &str, role: &[&str]) -> Self {
        // He may not see the folder where it was built.
        let copy = std::env::temp_dir().join(format!("mirab-test-{}-{test}", std::process::id()));
        std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        let mut command = Command::new(&copy);
        prepare(&mut command, test, role);
        command.current_dir("/").uid(user).gid(group);
        let started = loop {
            match command.spawn() {
                // A process that another thread starts just now has it open for writing, for a moment.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    thread::sleep(Duration::from_millis(1));
                }
                started => break started.unwrap(),
            }
        };
        std::fs::remove_file(&copy).unwrap();
        Self(started)
    }

    /// Waits until it has told something; what that was.
    pub fn hears(&mut self) -> String {
        let out = self.0.stdout.as_mut().unwrap();
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            if out.read(&mut byte).unwrap() == 0 {
                panic!("it ended, and told nothing: {}", self.last_words());
            }
            if byte[0] != b'\n' {
                line.push(byte[0]);
                continue;
            }
            if let Some(told) = String::from_utf8_lossy(&line).strip_prefix("told: ") {
                return told.to_owned();
            }
            line.clear();
        }
    }

    /// Lets it go on.
    pub fn go(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    pub fn kill(&mut self) -> ExitStatus {
        self.0.kill().unwrap();
        self.0.wait().unwrap()
    }

    fn last_words(&mut self) -> String {
        let mut text = String::new();
        let _ = self.0.kill();
        let _ = self.0.stderr.as_mut().unwrap().read_to_string(&mut text);
        text
    }

    /// Waits for its end, which must be a good one; what it told.
    #[track_caller]
    pub fn end(mut self) -> Vec<String> {
        drop(self.0.stdin.take());
        let begun = Instant::now();
        let status = loop {
            match self.0.try_wait().unwrap() {
                Some(status) => break status,
                None if begun.elapsed() > Duration::from_secs(120) => {
                    panic!("it hangs: {}", self.last_words());
                }
                None => thread::sleep(Duration::from_millis(1)),
            }
        };
        let mut text = String::new();
        self.0.stdout.as_mut().unwrap().read_to_string(&mut text).unwrap();
        assert!(status.success(), "{status}: {text}{}", self.last_words());
        text.lines().filter_map(|line| line.strip_prefix("told: ")).map(str::to_owned).collect()
    }

    /// The number that it told last.
    #[track_caller]
    pub fn number(self) -> u64 {
        self.end().last().expect("it told nothing").parse().expect("a number")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// In a worker: waits until it may go on; false when it is to end.
pub fn may_go_on() -> bool {
    let mut line = [0; 3];
    std::io::stdin().read_exact(&mut line).is_ok()
}

/// An instant that all processes know, so long from now.
pub fn instant(after: Duration) -> String {
    (SystemTime::now() + after).duration_since(UNIX_EPOCH).unwrap().as_micros().to_string()
}

/// In a worker: waits for such an instant.
pub fn wait_until(instant: &str) {
    let then = UNIX_EPOCH + Duration::from_micros(instant.parse().unwrap());
    while let Ok(left) = then.duration_since(SystemTime::now()) {
        thread::sleep(left);
    }
}

/// Whether this machine and user can do that.
pub fn can(words: &[&str]) -> bool {
    let [first, rest @ ..] = words else { return true };
    let tried = Command::new(first).args(rest).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// What gives a process a mount of its own; none, which is said, where nothing does.
pub fn mounting() -> Option<Vec<&'static str>> {
    let ways: [&[&str]; 2] = [&["unshare", "-m"], &["unshare", "-Urm"]];
    let found =
        ways.into_iter().find(|way| can(&[way, &["mount", "-t", "tmpfs", "tmpfs", "/mnt"][..]].concat()));
    if found.is_none() {
        say(format_args!("a file system of its own: neither this user nor this machine can mount one"));
    }
    found.map(<[_]>::to_vec)
}
