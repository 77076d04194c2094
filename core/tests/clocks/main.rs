//! Clients whose clocks disagree: the server's decides, and nobody is admitted twice or kept waiting for it.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use common::say;
use common::server::Server;
use mirab::{Limiter, OnStoreFailure, Policy, Store};

const HOUR: i64 = 3_600;

/// Every algorithm, with a limit that gives nothing back within a test.
const POLICIES: [&str; 8] = [
    "100/30 days",
    "leaky_bucket: 100/30 days queue 99",
    "fixed_window: 100/30 days",
    "fixed_window: 100/month in Africa/Cairo",
    "sliding_window: 100/30 days",
    "sliding_log: 100/30 days",
    "sliding_log: 100/30 days buckets 30",
    "concurrency: 100 for 600s",
];

fn open(policy: &str, uri: &str, choice: OnStoreFailure) -> Limiter {
    let builder = Limiter::builder(Policy::parse(policy).unwrap()).store(Store::open(uri).unwrap());
    builder.on_store_failure(choice).build().unwrap()
}

#[test]
fn two_clients_whose_clocks_are_an_hour_apart_are_exact_together() {
    if let Some(uri) = as_client() {
        return decides_beside_another(&uri);
    }
    let server = Server::start(&[]);
    for (one, other) in [(0, HOUR), (-HOUR, 0), (-HOUR / 2, HOUR / 2)] {
        let uri = server.uri("&timeout_ms=5000");
        server.tell(&["FLUSHALL"]);
        let clients = [one, other].map(|shift| client(shift, &uri, server.dir()));
        let told = clients.map(finished);
        for (place, policy) in POLICIES.iter().enumerate() {
            let admitted = told.iter().map(|told| told[place]).sum::<i64>();
            assert_eq!(admitted, 100, "{policy}, clocks {one} and {other} s off: {told:?}");
        }
        say(format_args!("clocks {one} s and {other} s off: {told:?} of 100 each"));
    }
}

#[test]
fn a_client_whose_clock_is_off_goes_on_by_the_servers_time_without_the_server() {
    if let Some(uri) = as_client() {
        return decides_without_the_server(&uri);
    }
    for shift in [-HOUR, HOUR] {
        let server = Server::start(&[]);
        let uri = server.uri("&timeout_ms=5000");
        assert_eq!(finished(client(shift, &uri, server.dir())), [0]);
    }
}

/// Runs this test again, as a client, in a process whose clock is so many seconds off.
fn client(shift: i64, uri: &str, dir: &Path) -> Child {
    let this = thread::current().name().expect("a test's thread bears its name").to_owned();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &this, "--nocapture", "--quiet"]);
    command.env("CLIENT_OF", uri).env("CLIENT_SHIFT", shift.to_string());
    let [first, image] = shifted_clock(shift, dir);
    command.env("LD_PRELOAD", first).env("SHIFTED_CLOCK", image);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// What it told, once it has ended well.
fn finished(mut child: Child) -> Vec<i64> {
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(child.wait().unwrap().success(), "{output}");
    let told = output.lines().find_map(|line| line.split_once("told: ")).expect("a line of numbers").1;
    told.split(' ').map(|number| number.parse().unwrap()).collect()
}

/// The library that is to be loaded first, and the image that it maps.
fn shifted_clock(shift: i64, dir: &Path) -> [PathBuf; 2] {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clocks/shifted.c");
    let built = |name: String, flags: &[&str]| {
        let library = dir.join(name);
        let mut command = Command::new(env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
        command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).args(flags).arg(&source).args(["-ldl"]);
        let done = command.output().expect("a C compiler");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        library
    };
    let shift_flag = format!("-DSHIFT={shift}");
    let image =
        ["-DIMAGE", &shift_flag, "-nostdlib", "-fno-stack-protector", "-Wl,-N,-z,norelro,--hash-style=sysv"];
    [built("first.so".to_owned(), &[]), built(format!("clock{shift}.so"), &image)]
}

/// The URI of the server, where this process is a client. Its clock must be off by what it should be, or
/// nothing is shown.
fn as_client() -> Option<String> {
    let uri = env::var("CLIENT_OF").ok()?;
    let shift: i64 = env::var("CLIENT_SHIFT").unwrap().parse().unwrap();
    let ahead = open("1/day", &uri, OnStoreFailure::Raise).health().unwrap().clock_ahead_us.unwrap();
    assert!(
        (ahead + shift * 1_000_000).abs() < 60_000_000,
        "the server is {ahead} us ahead, not {shift} s behind"
    );
    Some(uri)
}

fn raw(uri: &str) -> redis::Connection {
    redis::Client::open(uri.split('?').next().unwrap()).unwrap().get_connection().unwrap()
}

fn decides_beside_another(uri: &str) {
    let mut raw = raw(uri);
    let admitted = POLICIES.map(|policy| {
        let limiter = open(policy, uri, OnStoreFailure::Raise);
        // Each begins when the other does.
        let mut count = |by: u64| redis::cmd("INCRBY").arg(policy).arg(by).query::<u64>(&mut raw).unwrap();
        count(1);
        while count(0) < 2 {}
        // More than there is, so that each is refused at some time, and told for how long.
        let decisions = (0..120).map(|_| limiter.acquire("k", 1).unwrap());
        let (admitted, refused): (Vec<_>, Vec<_>) = decisions.partition(mirab::Decision::allowed);
        for decision in refused {
            let wait = decision.retry_after().unwrap();
            assert!(wait > Duration::ZERO && wait <= Duration::from_secs(31 * 86_400), "{policy}: {wait:?}");
        }
        admitted.len().to_string()
    });
    // A promise is kept by any clock: of one token in 300 ms each of two clients gets his in time.
    let limiter = open("1/300ms", uri, OnStoreFailure::Raise);
    let begun = Instant::now();
    (0..3).for_each(|_| assert!(limiter.wait("turns", 1, Some(Duration::from_secs(60))).unwrap().allowed()));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    say(format_args!("told: {}", admitted.join(" ")));
}

fn decides_without_the_server(uri: &str) {
    let limiter = open("10/10 minutes", uri, OnStoreFailure::Local);
    assert_eq!((0..20).filter(|_| limiter.allow("k", 1).unwrap()).count(), 10);
    // It answers by ending.
    let _ = redis::cmd("SHUTDOWN").arg("NOSAVE").exec(&mut raw(uri));
    let begun = Instant::now();
    let decision = loop {
        let decision = limiter.acquire("k", 1).unwrap();
        if decision.degraded() {
            break decision;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it is still decided by the server");
        thread::sleep(Duration::from_millis(10));
    };
    // A client that goes on by the server's time knows that a minute has to pass, and not that an hour has.
    let wait = decision.retry_after().unwrap_or_default();
    assert!(!decision.allowed() && wait <= Duration::from_secs(60), "{decision:?}");
    say(format_args!("told: {}", u8::from(decision.allowed())));
}
