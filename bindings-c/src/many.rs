//! Several keys in one step.

use crate::decision::mirab_decision;
use crate::error::{Failure, mirab_error, mirab_result};
use crate::ffi::{natural, outputs, shared, slice};
use crate::guard::guard;
use crate::limiter::mirab_limiter;

/// As `mirab_limiter_acquire` for `count` keys in one step, in their order: each is admitted or
/// refused for itself, and the same key twice counts twice. `keys`, `key_lens`, `costs` and `out`
/// are arrays of `count` elements; `costs` may be NULL, for 1 each. When one of them can't be used
/// or decided, nothing is taken, and the message names its index: "item 3: ...".
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mirab_limiter_acquire_many(
    limiter: *const mirab_limiter,
    keys: *const *const u8,
    key_lens: *const usize,
    costs: *const i64,
    count: usize,
    error: *mut mirab_error,
    out: *mut mirab_decision,
) -> mirab_result {
    guard(error, || {
        // SAFETY: the header's conventions.
        let (limiter, keys, lens, out) = unsafe {
            let (keys, lens) = (slice(keys, count, "keys")?, slice(key_lens, count, "key_lens")?);
            (shared(limiter, "limiter")?, keys, lens, outputs(out, count, count, "out")?)
        };
        // SAFETY: as above, unless there are none.
        let costs = if costs.is_null() { &[] } else { unsafe { slice(costs, count, "costs")? } };
        let item = |(index, (&key, &len)): (usize, (&*const u8, &usize))| {
            // SAFETY: as above, for each of them.
            let key = unsafe { slice(key, len, "key") };
            let cost = natural(costs.get(index).copied().unwrap_or(1), "cost");
            key.and_then(|key| Ok((key, cost?))).map_err(|failure| failure.of_item(index))
        };
        let items = keys.iter().zip(lens).enumerate().map(item).collect::<Result<Vec<_>, Failure>>()?;
        let decisions = limiter.inner.acquire_many_bare_at(&items, limiter.inner.read_clock()?)?;
        let each = items.iter().zip(&decisions);
        out.write(each.map(|((key, _), bare)| mirab_decision::new(limiter.inner.tell(bare), limiter, key)));
        Ok(())
    })
}
