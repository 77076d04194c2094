//! An event loop of poll(2), for a driver.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use mirab::{BareDecision, Driver, Error};

/// Runs the loop until `count` requests are answered.
pub fn run(driver: &mut Driver, count: usize) -> HashMap<u64, Result<BareDecision, Error>> {
    let mut answered = HashMap::new();
    let begun = Instant::now();
    loop {
        let watch = driver.turn();
        answered.extend(driver.take_answered());
        if answered.len() >= count {
            return answered;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{} of {count} answered", answered.len());
        let events = libc::POLLIN | if watch.writes { libc::POLLOUT } else { 0 };
        let of = |fd| libc::pollfd { fd, events, revents: 0 };
        let mut fds = vec![libc::pollfd { events: libc::POLLIN, ..of(driver.wake_fd()) }];
        fds.extend(watch.link.map(of));
        let within = watch.within.unwrap_or(Duration::from_secs(1)).as_millis() as i32 + 1;
        // SAFETY: the list is valid for the call.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as _, within) };
    }
}
