//! How decisions are told to clients over HTTP.

use std::ffi::c_char;
use std::time::Duration;

use mirab::http::{Answer, Answers, Naming};
use mirab::{Time, Told};

use crate::error::{Failure, mirab_error, mirab_result};
use crate::ffi::{self, Handle, exclusive, natural, output, slice, text};
use crate::guard::{guard, guard_silently};

/// How decisions are told to clients: made once, used for each.
/// Threads: one at a time, while it is being set; then any number may answer by it.
/// Lifetime: it stands alone, and copies what it is given; its answers may outlive it.
/// NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_answers_free`.
/// Freeing: `mirab_answers_free`, once.
pub struct mirab_answers {
    inner: Answers,
    policy_name: Option<String>,
    partitions: bool,
}

impl Handle for mirab_answers {}

impl mirab_answers {
    /// The answer to a decision about `key`.
    pub(crate) fn answer(&self, told: Told<'_>, key: &[u8], time: Time) -> Answer {
        let policy_name = self.policy_name.as_deref();
        let naming = Naming { policy_name, partition_key: self.partitions.then_some(key) };
        self.inner.answer(told, &naming, time.given_date())
    }

    /// What fails leaves it as it was.
    fn set(&mut self, change: impl FnOnce(Answers) -> mirab::Result<Answers>) -> Result<(), Failure> {
        self.inner = change(self.inner.clone())?;
        Ok(())
    }
}

/// Makes answers with the header fields of `count` families: any of "draft-8" (and to 11),
/// "draft-8-spaced", "draft-7", "draft-6", "x-ratelimit" and "x-ratelimit-epoch". Without one a
/// refusal has its Retry-After and no more.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answers_new(
    families: *const *const c_char,
    count: usize,
    error: *mut mirab_error,
    out: *mut *mut mirab_answers,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (families, out) = unsafe { (ffi::texts(families, count, "families")?, output(out, "out")?) };
        let inner = Answers::new(&families)?;
        out.give(mirab_answers { inner, policy_name: None, partitions: false });
        Ok(())
    })
}

/// The body of refusals: "none", unless told otherwise; "problem" for `application/problem+json`
/// (RFC 9457); "json" for a plain `application/json`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answers_set_body(
    answers: *mut mirab_answers,
    body: *const c_char,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (answers, body) = unsafe { (exclusive(answers, "answers")?, text(body, "body")?) };
        answers.set(|answers| answers.body(body))
    })
}

/// What the policy is called in place of the limit's name, where it has one limit.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answers_set_policy_name(
    answers: *mut mirab_answers,
    name: *const c_char,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (answers, name) = unsafe { (exclusive(answers, "answers")?, text(name, "name")?) };
        answers.policy_name = Some(name.to_owned());
        Ok(())
    })
}

/// A secret of 16 bytes or more, the same in all processes that answer the same clients: with it they
/// tell a client the same partition. Without one each process has one of its own.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answers_set_partition_salt(
    answers: *mut mirab_answers,
    salt: *const u8,
    salt_len: usize,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (answers, salt) = unsafe { (exclusive(answers, "answers")?, slice(salt, salt_len, "salt")?) };
        answers.set(|answers| answers.partition_salt(salt))
    })
}

/// Whether a client is told which of his buckets is meant: a salted hash of the key, as `pk` in the
/// families of draft-8. He isn't, unless told otherwise.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answers_set_partitions(
    answers: *mut mirab_answers,
    told: bool,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        unsafe { exclusive(answers, "answers")? }.partitions = told;
        Ok(())
    })
}

/// The longest that you hold a request for the `delay_us` of a leaky bucket, in microseconds; without
/// it, as long as it takes. An admitted request that would have to be held longer is answered as
/// refused, until it would not be: the decision says `allowed` and the answer's status is 429. Give
/// then back what it took, with `mirab_limiter_refund`.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answers_set_max_hold(
    answers: *mut mirab_answers,
    longest_us: i64,
    error: *mut mirab_error,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let answers = unsafe { exclusive(answers, "answers")? };
        let longest = Duration::from_micros(natural(longest_us, "longest_us")?);
        answers.set(|answers| Ok(answers.max_hold(longest)))
    })
}

/// Frees the answers. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answers_free(answers: *mut mirab_answers) {
    // SAFETY: the header's conventions.
    guard_silently(|| unsafe { ffi::free(answers) });
}
