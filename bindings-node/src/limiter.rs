//! Limiters. Keys are a string or a `Uint8Array`; a time is what a JavaScript clock said, in
//! milliseconds since 1970, or `undefined` for the limiter's own clock. A cost or a time that is left
//! out, 1 and `undefined`, is not asked for: nearly every call is `(limiter, key)`.

use mirab::{Error, ErrorKind, Limit, Limiter, News, Policy, Result, Store, Time, Told, duration};

use crate::clock;
use crate::decision::{self, Held};
use crate::js::{Call, IntoJs, Slots, Value};

/// `(limits, scopes, [store, onStoreFailure], instances, clock?) => limiter`; an empty scope is none, and the
/// clock a manual one, or `"host"` where every operation is told the time.
pub fn new(call: &Call<'_>) -> Result<Value> {
    let mut limits = Vec::new();
    for (text, scope) in call.texts(0)?.iter().zip(call.texts(1)?) {
        for limit in Policy::parse(text)?.limits() {
            let limit = limit.clone();
            limits.push(if scope.is_empty() { limit } else { limit.with_scope(&scope)? });
        }
    }
    let (store, choice) = match call.texts(2)?.as_slice() {
        [store, choice] => (Store::open(store)?, choice.parse()?),
        _ => return Err(Error::new(ErrorKind::Internal, "a store, and what to do when it fails")),
    };
    let mut builder = Limiter::builder(Policy::new(limits)?)
        .store(store)
        .on_store_failure(choice)
        .instances(call.integer(3)?);
    if call.number_or_none(4).is_some() {
        builder = builder.clock(clock::at(call, 4)?);
    } else if call.text_or_none(4).is_some() {
        builder = builder.clock(clock::told());
    }
    let limiter = builder.build()?;
    call.give(call.state().limiters.borrow_mut().insert(limiter) as f64)
}

/// `(limiter)`: forgets it; its number may be given again.
pub fn free(call: &Call<'_>) -> Result<Value> {
    call.state().limiters.borrow_mut().try_remove(call.handle(0)?);
    call.end_unused_loops();
    call.give(())
}

/// `(limiter)`: closes it, for decisions in flight too, and forgets it.
pub fn close(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| {
        limiter.close();
        Ok(())
    })?;
    free(call)
}

/// `(limiter) => boolean`: whether its decisions never block.
pub fn is_local(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| call.give(limiter.store().is_local()))
}

/// `(limiter) => string`: what its store is, `memory`, `shm` or `redis`.
pub fn kind(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| call.give(limiter.store().kind().to_owned()))
}

/// `(limiter) => string[]`: the names of its limits, in their order.
pub fn names(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| {
        let names = limiter.policy().limits().iter().map(|limit| limit.name().to_owned());
        call.give(names.collect::<Vec<_>>())
    })
}

/// `(limiter) => string[]`: its limits in canonical notation, in their order.
pub fn texts(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| {
        let texts = limiter.policy().limits().iter().map(ToString::to_string);
        call.give(texts.collect::<Vec<_>>())
    })
}

/// `(limiter) => number[]`: how many microseconds the last in each limit's queue is held.
pub fn longest_delays(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| {
        let delays = limiter.policy().limits().iter().map(|limit| limit.longest_delay().as_micros() as f64);
        call.give(delays.collect::<Vec<_>>())
    })
}

/// `(limiter) => boolean`: whether its decisions take leases.
pub fn is_leasing(call: &Call<'_>) -> Result<Value> {
    with(call, |limiter| call.give(limiter.policy().limits().iter().any(Limit::is_concurrency)))
}

/// `(limiter) => number[]`: its counts, in the order of `lib/stats.js`.
pub fn stats(call: &Call<'_>) -> Result<Value> {
    let stats = with(call, |limiter| Ok(limiter.stats()))?;
    let counts = [
        stats.allowed,
        stats.refused,
        stats.never,
        stats.blocked,
        stats.errors,
        stats.degraded,
        stats.refunded,
        stats.keys,
        stats.evicted,
    ];
    call.give(counts.map(|count| count as f64).to_vec())
}

/// `(limiter) => Promise<(text | number | boolean | undefined)[]>`: how its store is, in the order of
/// `lib/health.js`.
pub fn health_async(call: &Call<'_>) -> Result<Value> {
    let limiter = at(call)?;
    call.promise(move || limiter.health().map(crate::health::Report))
}

/// `(limiter) => string[] | undefined`: what an operator was not told yet of its store; none mostly, and when
/// it is closed.
pub fn news(call: &Call<'_>) -> Result<Value> {
    let limiters = call.state().limiters.borrow();
    let news = limiters.get(call.handle(0)?).map(Limiter::take_news).filter(|news| !news.is_empty());
    let texts = |news: Vec<News>| news.into_iter().map(|news| news.text).collect::<Vec<_>>();
    news.map_or(Ok(Value::UNDEFINED), |news| call.give(texts(news)))
}

/// `(limiter, key, cost?, time?)`: the decision goes to the shared array; so in the next two.
pub fn acquire(call: &Call<'_>) -> Result<Value> {
    now(call, |limiter, key, cost, time| {
        limiter.acquire_bare_at(key, cost, time, |bare| share(call, limiter.tell(&bare)))
    })
}

/// As `acquire`; the decision is held here for `answer`, until `decisionFree`.
pub fn acquire_held(call: &Call<'_>) -> Result<Value> {
    let decision = now(call, |limiter, key, cost, time| limiter.acquire_at(key, cost, time))?;
    Held(decision).write(call, call.results());
    Ok(Value::UNDEFINED)
}

/// As `peek`; the decision is held here, as `acquireHeld` holds it.
pub fn peek_held(call: &Call<'_>) -> Result<Value> {
    let decision = now(call, |limiter, key, cost, time| limiter.peek_at(key, cost, time))?;
    Held(decision).write(call, call.results());
    Ok(Value::UNDEFINED)
}

/// `(limiter, key, cost?, time?)`.
pub fn peek(call: &Call<'_>) -> Result<Value> {
    now(call, |limiter, key, cost, time| {
        limiter.peek_bare_at(key, cost, time, |bare| share(call, limiter.tell(&bare)))
    })
}

/// `(limiter, key, cost?, time?) => boolean`.
pub fn allow(call: &Call<'_>) -> Result<Value> {
    call.give(now(call, |limiter, key, cost, time| limiter.allow_at(key, cost, time))?)
}

/// `(limiter, key, 0, time?)`.
pub fn reset(call: &Call<'_>) -> Result<Value> {
    call.give(now(call, |limiter, key, _, time| limiter.reset_at(key, time))?)
}

/// `(limiter, keys, costs, time?) => Float64Array`: the slots of each decision, one after the other.
pub fn acquire_many(call: &Call<'_>) -> Result<Value> {
    let items = items(call)?;
    call.give(with(call, |limiter| acquire_all(limiter, &items, read_time(call, limiter)?))?)
}

/// `(limiter, key, 0, time?, ms)`.
pub fn block(call: &Call<'_>) -> Result<Value> {
    let duration = duration::from_millis("block", call.number(4)?)?;
    call.give(now(call, |limiter, key, _, time| limiter.block_at(key, duration, time))?)
}

/// `(limiter, key, 0, time?)`.
pub fn unblock(call: &Call<'_>) -> Result<Value> {
    call.give(now(call, |limiter, key, _, time| limiter.unblock_at(key, time))?)
}

/// `(limiter, key, 0, time?) => Promise<undefined>`.
pub fn reset_async(call: &Call<'_>) -> Result<Value> {
    later(call, |limiter, key, _, time| limiter.reset_at(key, time))
}

/// As `acquireMany`, a promise; so are the next two.
pub fn acquire_many_async(call: &Call<'_>) -> Result<Value> {
    let items = items(call)?;
    let limiter = at(call)?;
    let time = read_time(call, &limiter)?;
    call.promise(move || acquire_all(&limiter, &items, time))
}

pub fn block_async(call: &Call<'_>) -> Result<Value> {
    let duration = duration::from_millis("block", call.number(4)?)?;
    later(call, move |limiter, key, _, time| limiter.block_at(key, duration, time))
}

pub fn unblock_async(call: &Call<'_>) -> Result<Value> {
    later(call, |limiter, key, _, time| limiter.unblock_at(key, time))
}

fn items(call: &Call<'_>) -> Result<Vec<(Vec<u8>, u64)>> {
    let costs = call.numbers(2)?.into_iter().map(|cost| cost as u64);
    Ok(call.keys(1)?.into_iter().zip(costs).collect())
}

fn acquire_all(limiter: &Limiter, items: &[(Vec<u8>, u64)], time: Time) -> Result<Slots> {
    limiter.acquire_many_bare_at(items, time).map(|all| decision::slots(limiter, &all))
}

/// Writes a decision to the shared array.
fn share(call: &Call<'_>, told: Told<'_>) -> Value {
    decision::write(told, None, call.results());
    Value::UNDEFINED
}

/// Runs an operation on the arguments `(limiter, key, cost?, time?)`, in this call.
#[inline]
pub fn now<T>(call: &Call<'_>, run: impl FnOnce(&Limiter, &[u8], u64, Time) -> Result<T>) -> Result<T> {
    let cost = read_cost(call)?;
    with(call, |limiter| {
        let time = read_time(call, limiter)?;
        call.with_bytes(1, |key| run(limiter, key, cost, time))
    })
}

/// Runs it on another thread; the clock is read here, and the promise of the outcome returned.
pub fn later<T: IntoJs + Send + 'static>(
    call: &Call<'_>,
    run: impl FnOnce(&Limiter, &[u8], u64, Time) -> Result<T> + Send + 'static,
) -> Result<Value> {
    let cost = read_cost(call)?;
    let limiter = at(call)?;
    let time = read_time(call, &limiter)?;
    let key = call.with_bytes(1, |key| Ok(key.to_vec()))?;
    call.promise(move || run(&limiter, &key, cost, time))
}

/// The limiter whose number stands first.
pub fn at(call: &Call<'_>) -> Result<Limiter> {
    with(call, |limiter| Ok(limiter.clone()))
}

/// The cost that stands third, else 1.
pub fn read_cost(call: &Call<'_>) -> Result<u64> {
    if call.has(2) { call.integer(2) } else { Ok(1) }
}

/// The time that stands fourth, else what the limiter's own clock says.
pub fn read_time(call: &Call<'_>, limiter: &Limiter) -> Result<Time> {
    match call.has(3).then(|| call.number_or_none(3)).flatten() {
        Some(ms) => clock::given(ms),
        None => limiter.read_clock(),
    }
}

fn with<R>(call: &Call<'_>, run: impl FnOnce(&Limiter) -> Result<R>) -> Result<R> {
    let limiters = call.state().limiters.borrow();
    let limiter = limiters
        .get(call.handle(0)?)
        .ok_or_else(|| Error::new(ErrorKind::Closed, "the limiter is closed"))?;
    run(limiter)
}
