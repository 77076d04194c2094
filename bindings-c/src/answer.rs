//! What one client is told of one decision.

use std::ffi::{CString, c_char};

use mirab::http::Answer;

use crate::answers::mirab_answers;
use crate::decision::mirab_decision;
use crate::error::{mirab_error, mirab_result};
use crate::ffi::{self, Handle, natural, output, shared, slice};
use crate::guard::{guard, guard_silently};
use crate::limiter::mirab_limiter;

/// What a client is told: to be sent where it refuses; where it admits, its header fields go with
/// your response.
/// Threads: may be shared; nothing changes it.
/// Lifetime: it stands alone; the texts that it lends live as long as it does.
/// NULL: `MIRAB_NULL_POINTER`, and nothing in `mirab_answer_free`.
/// Freeing: `mirab_answer_free`, once.
pub struct mirab_answer {
    status: u32,
    /// Names and values.
    fields: Vec<(CString, CString)>,
    body: Option<CString>,
}

impl Handle for mirab_answer {}

impl From<Answer> for mirab_answer {
    fn from(answer: Answer) -> Self {
        let fields = answer.fields.into_iter().map(|(name, value)| (c_text(name), c_text(value)));
        Self { status: answer.status.into(), fields: fields.collect(), body: answer.body.map(c_text) }
    }
}

/// No NUL can be in it: what is told has no control characters, and JSON escapes them.
fn c_text(text: impl Into<Vec<u8>>) -> CString {
    CString::new(text).unwrap_or_default()
}

/// As `mirab_limiter_acquire`, and writes the answer to `out_answer`, which is then yours to free.
/// Admit the request when its status is 200.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_acquire_with_answer(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    cost: i64,
    answers: *const mirab_answers,
    error: *mut mirab_error,
    out: *mut mirab_decision,
    out_answer: *mut *mut mirab_answer,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key, answers, out, out_answer) = unsafe {
            let (limiter, key) = (shared(limiter, "limiter")?, slice(key, key_len, "key")?);
            let (out, out_answer) = (output(out, "out")?, output(out_answer, "out_answer")?);
            (limiter, key, shared(answers, "answers")?, out, out_answer)
        };
        let (cost, time) = (natural(cost, "cost")?, limiter.inner.read_clock()?);
        let tell = |bare| {
            let told = limiter.inner.tell(&bare);
            out_answer.give(answers.answer(told, key, time).into());
            out.write(mirab_decision::new(told, limiter, key));
        };
        Ok(limiter.inner.acquire_bare_at(key, cost, time, tell)?)
    })
}

/// As `mirab_limiter_peek`, and writes what the client would be told, as
/// `mirab_limiter_acquire_with_answer` does.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_peek_with_answer(
    limiter: *const mirab_limiter,
    key: *const u8,
    key_len: usize,
    cost: i64,
    answers: *const mirab_answers,
    error: *mut mirab_error,
    out: *mut mirab_decision,
    out_answer: *mut *mut mirab_answer,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, key, answers, out, out_answer) = unsafe {
            let (limiter, key) = (shared(limiter, "limiter")?, slice(key, key_len, "key")?);
            let (out, out_answer) = (output(out, "out")?, output(out_answer, "out_answer")?);
            (limiter, key, shared(answers, "answers")?, out, out_answer)
        };
        let (cost, time) = (natural(cost, "cost")?, limiter.inner.read_clock()?);
        let tell = |bare| {
            let told = limiter.inner.tell(&bare);
            out_answer.give(answers.answer(told, key, time).into());
            out.write(mirab_decision::new(told, limiter, key));
        };
        Ok(limiter.inner.peek_bare_at(key, cost, time, tell)?)
    })
}

/// Tells the status: 200 where the request may pass, 429 where it may not, 503 where nobody could
/// decide, since the store failed and "closed" was chosen.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answer_status(
    answer: *const mirab_answer,
    error: *mut mirab_error,
    out: *mut u32,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (answer, out) = unsafe { (shared(answer, "answer")?, output(out, "out")?) };
        out.write(answer.status);
        Ok(())
    })
}

/// Lends a header field, from 0 on, in their order: the Content-Type of the body is among them. `out`
/// gets whether there is one of that index; the rest is written only if so. Don't free the texts.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answer_field(
    answer: *const mirab_answer,
    index: u32,
    error: *mut mirab_error,
    out: *mut bool,
    out_name: *mut *const c_char,
    out_value: *mut *const c_char,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (answer, out, out_name, out_value) = unsafe {
            let (out_name, out_value) = (output(out_name, "out_name")?, output(out_value, "out_value")?);
            (shared(answer, "answer")?, output(out, "out")?, out_name, out_value)
        };
        let field = answer.fields.get(index as usize);
        out.write(field.is_some());
        if let Some((name, value)) = field {
            out_name.write(name.as_ptr());
            out_value.write(value.as_ptr());
        }
        Ok(())
    })
}

/// Lends the body of a refusal, UTF-8; NULL where there is none. Don't free it.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answer_body(
    answer: *const mirab_answer,
    error: *mut mirab_error,
    out: *mut *const c_char,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (answer, out) = unsafe { (shared(answer, "answer")?, output(out, "out")?) };
        out.write(answer.body.as_ref().map_or(std::ptr::null(), |body| body.as_ptr()));
        Ok(())
    })
}

/// Frees the answer. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_answer_free(answer: *mut mirab_answer) {
    // SAFETY: the header's conventions.
    guard_silently(|| unsafe { ffi::free(answer) });
}
