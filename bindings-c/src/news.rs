//! What a store has to say to the program's log.

use std::ffi::c_char;

use crate::error::{mirab_error, mirab_result};
use crate::ffi::{output, outputs, shared, terminated};
use crate::guard::guard;
use crate::limiter::mirab_limiter;

/// Room in which a line of news is seldom cut, its NUL byte included.
pub const MIRAB_NEWS_SIZE: usize = 1024;

/// Takes the oldest line of what an operator should know of the limiter's store and was not told
/// yet: that it isn't asked any more and why, that it decides again; of shared memory, that its file
/// was made with another size (when the limiter is made), or was removed. Each line is told once, to one
/// of all limiters on the same store; of those that nobody takes the oldest go. `out` gets whether
/// there was one; if so, `out_line` gets it, UTF-8, ended by NUL, cut to `room` bytes (1 or more).
/// It asks no store, costs next to nothing when there is none, and works on a closed limiter too.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_take_news(
    limiter: *const mirab_limiter,
    error: *mut mirab_error,
    out: *mut bool,
    out_line: *mut c_char,
    room: usize,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, out) = unsafe { (shared(limiter, "limiter")?, output(out, "out")?) };
        // SAFETY: as above.
        let line = unsafe { outputs(out_line, room, room.max(1), "out_line")? };
        let news = limiter.inner.next_news();
        out.write(news.is_some());
        if let Some(news) = news {
            line.write(terminated(&news.text, room));
        }
        Ok(())
    })
}
