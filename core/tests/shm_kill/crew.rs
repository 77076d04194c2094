//! Worker processes, and who kills them.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Random;
use crate::tally::{Count, Tally};
use crate::until;

/// The variable that tells a worker its role.
pub const ROLE: &str = "MIRAB_KILL_ROLE";

/// How long nobody may get on before that is a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// This program as a worker.
pub fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "worker", "--nocapture", "--quiet"]).env(ROLE, role);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// A role as a worker is told it.
pub fn role(name: &str, uri: &str, tally: &Tally, policy: &str, keys: u64) -> String {
    format!("{name}|{uri}|{}|{policy}|{keys}", tally.path.display())
}

/// Sends a signal to a child that was not waited for yet.
pub fn signal(child: &Child, signal: libc::c_int) {
    // SAFETY: its number is nobody else's before it is waited for.
    assert_eq!(unsafe { libc::kill(child.id().cast_signed(), signal) }, 0);
}

/// Waits for the end of a child, however it ends.
#[track_caller]
pub fn end_of(child: &mut Child) -> ExitStatus {
    let mut status = None;
    until("a worker that should end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

pub struct Crew<'a> {
    role: String,
    pub tally: &'a Tally,
    pub workers: Vec<Child>,
    pub killed: u64,
    pub random: Random,
}

impl<'a> Crew<'a> {
    pub fn new(role: String, tally: &'a Tally, count: usize) -> Self {
        let seed = std::process::id().into();
        let mut crew = Self { role, tally, workers: Vec::new(), killed: 0, random: Random(seed) };
        (0..count).for_each(|_| crew.start());
        crew
    }

    pub fn start(&mut self) {
        self.workers.push(command(&self.role).spawn().unwrap());
    }

    /// Kills one of them and starts another; false when all was done before.
    pub fn replace_one(&mut self) -> bool {
        let place = self.random.below(self.workers.len() as u64) as usize;
        let mut killed = self.workers.swap_remove(place);
        killed.kill().unwrap();
        let status = killed.wait().unwrap();
        if status.signal() == Some(libc::SIGKILL) {
            self.killed += 1;
            self.start();
            return true;
        }
        assert!(status.success(), "a worker failed: {status}");
        self.start();
        !self.workers.iter_mut().all(|worker| worker.try_wait().unwrap().is_some())
    }

    /// Kills one every so often, until that time is over or all is done.
    pub fn kill_for(&mut self, time: Duration, interval: Duration, is_done: impl Fn() -> bool) {
        let begun = Instant::now();
        let mut last = (self.tally.get(Count::Begun), Instant::now());
        while begun.elapsed() < time && !is_done() {
            thread::sleep(interval / 2 + interval.mul_f64(self.random.below(1_000) as f64 / 1_000.0));
            self.replace_one();
            let counted = self.tally.get(Count::Begun);
            if counted != last.0 {
                last = (counted, Instant::now());
            }
            assert!(last.1.elapsed() < PATIENCE, "nobody decides any more");
        }
    }

    /// Ends all of them, in peace; how many were killed before.
    #[track_caller]
    pub fn end(mut self) -> u64 {
        self.tally.set(Count::Stop, 1);
        for worker in &mut self.workers {
            let status = end_of(worker);
            assert!(status.success(), "a worker failed: {status}");
        }
        self.killed
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}
