//! Shared memory: its file, and processes that use it at the same time, each for keys of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::cells::SLOWER;
use crate::contenders::mirab;
use crate::slot::Measured;

/// Keys of each process.
const KEYS: usize = 1_000;

/// A file of its own, removed with this.
pub struct File(PathBuf);

impl File {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(format!("/dev/shm/mirab-bench-{}-{count}", std::process::id()).into())
    }

    pub fn uri(&self) -> String {
        format!("shm://{}?max_keys=400000", self.0.display())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// So many processes on one file.
pub struct Processes {
    _file: File,
    crew: Vec<Member>,
}

struct Member {
    child: Child,
    asks: ChildStdin,
    tells: BufReader<ChildStdout>,
}

impl Processes {
    pub fn new(count: usize) -> Outcome<Self> {
        let file = File::new();
        let member = |number: usize| -> Outcome<Member> {
            let mut child = Command::new(std::env::current_exe()?)
                .args(["--member", &file.uri(), &number.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let asks = child.stdin.take().ok_or("no pipe")?;
            let tells = BufReader::new(child.stdout.take().ok_or("no pipe")?);
            Ok(Member { child, asks, tells })
        };
        let crew = (0..count).map(member).collect::<Outcome<_>>()?;
        Ok(Self { _file: file, crew })
    }

    /// All of them at once; wall time divided by what all of them decided.
    pub fn measure(&mut self, time: Duration) -> Outcome<Measured> {
        for member in &mut self.crew {
            writeln!(member.asks, "{}", time.as_nanos())?;
        }
        let mut count = 0;
        for member in &mut self.crew {
            let mut line = String::new();
            member.tells.read_line(&mut line)?;
            count += line.trim().parse::<u64>()?;
        }
        Ok(Measured { ns: time.as_nanos() as f64 / count as f64, count })
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for member in &mut self.crew {
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

/// One of the processes: for each line, a number of nanoseconds, says how many it decided in that time.
pub fn member(uri: &str, number: &str) -> Outcome<()> {
    let limiter = mirab(SLOWER, uri)?;
    let keys: Vec<String> = (0..KEYS).map(|key| format!("{number}:user:{key:08}")).collect();
    for line in std::io::stdin().lock().lines() {
        let time = Duration::from_nanos(line?.trim().parse()?);
        let (begun, mut count) = (Instant::now(), 0_u64);
        while begun.elapsed() < time {
            for key in &keys {
                if !limiter.allow(key, 1)? {
                    return Err(format!("{key} was refused").into());
                }
            }
            count += keys.len() as u64;
        }
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{count}")?;
        stdout.flush()?;
    }
    Ok(())
}
