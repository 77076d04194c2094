//! A socket that is never waited on for longer than until a deadline.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};

pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects to the first of the host's addresses that takes it. Looking the name up may take longer
    /// than the deadline: nobody waits for it but the thread that connects.
    pub fn tcp(host: &str, port: u16, deadline: Instant) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(deadline)?) {
                Ok(stream) => {
                    // A decision is one small packet: waiting for a second one would only delay it.
                    stream.set_nodelay(true)?;
                    rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
                    return Ok(Self::Tcp(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub fn unix(path: &Path) -> io::Result<Self> {
        UnixStream::connect(path).map(Self::Unix)
    }

    /// For how long [`receive_or_wait`](Self::receive_or_wait) waits.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(Some(patience)),
            Self::Unix(stream) => stream.set_read_timeout(Some(patience)),
        }
    }

    pub fn raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }

    /// Sends what the kernel takes now.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
    }

    /// Receives what is there now; 0 when the other side has closed.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self, into, RecvFlags::DONTWAIT)?.0)
    }

    /// As [`receive`](Self::receive), but waits for something, in the same step.
    pub fn receive_or_wait(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self, into, RecvFlags::empty())?.0)
    }

    /// Whether an idle connection is still one: the other side has neither closed it nor said anything.
    pub fn is_quiet(&self) -> bool {
        let mut byte = [0];
        let peeked = recv(self, &mut byte[..], RecvFlags::DONTWAIT | RecvFlags::PEEK);
        matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until it can be read (or written), at most until the deadline. A signal interrupts nothing.
    pub fn wait(&self, writable: bool, deadline: Instant) -> io::Result<()> {
        let flags = if writable { PollFlags::OUT } else { PollFlags::IN };
        loop {
            let left = left(deadline)?;
            let timeout =
                Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::new(self, flags)], Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

/// What is left until then; an error when nothing is.
pub(super) fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
