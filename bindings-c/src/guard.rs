//! The one way into the library: no panic and no error leaves it except as a result code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Failure, mirab_error, mirab_result};

/// Runs the body of an exported function and reports how it ended.
///
/// `error` may be NULL; it is written only when something failed.
#[inline]
pub(crate) fn guard(error: *mut mirab_error, body: impl FnOnce() -> Result<(), Failure>) -> mirab_result {
    // Unwind safety: the core's locks don't poison and its state is written in whole steps.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => mirab_result::MIRAB_OK,
        Ok(Err(failure)) => report(error, &failure),
        Err(panic) => report(error, &bug(&*panic)),
    }
}

/// Cold, so that what nearly no call does takes no room in each of them.
#[cold]
fn report(error: *mut mirab_error, failure: &Failure) -> mirab_result {
    if !error.is_null() {
        // SAFETY: the caller passes NULL or a `mirab_error` of its own, which may be uninitialised.
        unsafe { error.write(failure.into()) };
    }
    failure.result()
}

#[cold]
fn bug(panic: &(dyn Any + Send)) -> Failure {
    Failure::new(mirab_result::MIRAB_PANIC, format!("a bug in mirab: {}", panic_text(panic)))
}

/// Runs the body of a function that has no result, such as the `_free` ones.
pub(crate) fn guard_silently(body: impl FnOnce()) {
    // Nobody is left to tell, and unwinding into C would end the process. What the panic
    // carries is forgotten, since dropping it might panic again.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        std::mem::forget(panic);
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("it panicked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_result_and_a_message() {
        let mut error = mirab_error::default();
        let result = guard(&mut error, || panic!("at the {}", "seams"));
        assert_eq!(result, mirab_result::MIRAB_PANIC);
        assert_eq!(error.text(), "a bug in mirab: at the seams");
    }

    #[test]
    fn a_panic_needs_no_error_to_write_to() {
        assert_eq!(guard(std::ptr::null_mut(), || panic!("alone")), mirab_result::MIRAB_PANIC);
        guard_silently(|| panic!("unheard"));
    }

    #[test]
    fn success_leaves_the_error_alone() {
        let mut error = mirab_error::default();
        let result = guard(&mut error, || Ok(()));
        assert_eq!(result, mirab_result::MIRAB_OK);
        assert_eq!(error.text(), "");
    }
}
