//! Connecting, by a thread that lives as long as it takes.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::desk::Desk;
use super::link::{Link, Lost};
use super::queue::Queue;

/// How long nobody tries to have one more connection after it could not be had.
const BETWEEN_TRIES: Duration = Duration::from_secs(1);

/// The first connection of a process, which alone may take longer: a worker's first requests should not be
/// decided beside the store.
#[derive(Clone, Copy)]
pub(super) enum First {
    Untried,
    Begun(Instant),
    Over,
}

impl First {
    pub fn begin(&mut self) {
        if let Self::Untried = self {
            *self = Self::Begun(Instant::now());
        }
    }
}

impl Desk {
    /// Makes a connection for another than those who meet here; `then` is called by the thread that made
    /// it. False where no thread can be started.
    pub fn connect_for(self: &Arc<Self>, then: impl FnOnce(Result<Link, Lost>) + Send + 'static) -> bool {
        self.lock().first.begin();
        let desk = Arc::clone(self);
        let started = spawn(move || {
            let link = Link::open(desk.settings(), desk.connect_deadline());
            let mut inner = desk.lock();
            inner.first = First::Over;
            match &link {
                Ok(_) => inner.circuit.found(),
                Err(lost) => inner.circuit.not_found(Instant::now(), lost.error(desk.settings(), false)),
            }
            desk.announce(&inner);
            drop(inner);
            then(link);
        });
        if let Err(error) = &started {
            self.lost(&self.unavailable(&format!("no thread to connect with: {error}")));
        }
        started.is_ok()
    }

    fn connect_deadline(&self) -> Instant {
        Instant::now() + self.settings().connect_timeout.max(self.settings().timeout)
    }

    /// Starts to connect, unless someone does.
    pub(super) fn connect(self: &Arc<Self>, inner: &mut Queue) {
        if inner.is_connecting {
            return;
        }
        inner.is_connecting = true;
        inner.first.begin();
        let (desk, generation) = (Arc::clone(self), inner.generation);
        let started = spawn(move || {
            let link = Link::open(desk.settings(), desk.connect_deadline());
            desk.connected(link, generation);
        });
        if let Err(error) = started {
            inner.is_connecting = false;
            let error = self.unavailable(&format!("no thread to connect with: {error}"));
            inner.circuit.not_found(Instant::now(), error.clone());
            inner.fail_all(&error);
        }
    }

    fn connected(&self, link: Result<Link, Lost>, generation: u32) {
        let mut inner = self.lock();
        if inner.generation != generation {
            return;
        }
        (inner.is_connecting, inner.first) = (false, First::Over);
        match link {
            Ok(link) => {
                inner.circuit.found();
                inner.open.push(link.raw_fd());
                inner.idle.push(link);
                inner.wake_next(self.settings().pool);
            }
            // It was to be one more: who waits is served by those that there are.
            Err(_) if inner.leading > 0 => inner.more_from = Some(Instant::now() + BETWEEN_TRIES),
            Err(lost) => {
                let error = lost.error(self.settings(), false);
                inner.circuit.not_found(Instant::now(), error.clone());
                inner.fail_all(&error);
            }
        }
        self.announce(&inner);
    }
}

/// Starts a thread that connects.
fn spawn(connect: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let builder = thread::Builder::new().name("mirab-connect".into()).stack_size(256 * 1024);
    let started = builder.spawn(move || {
        block_signals();
        connect();
    });
    started.map(|_| ())
}

/// Signals are for the threads of the host.
fn block_signals() {
    let mut all = std::mem::MaybeUninit::uninit();
    // SAFETY: the set is initialised by the call, which cannot fail with these arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
    }
}
