//! The Node addon of mirab: what `lib/*.js` calls.
//!
//! The functions are raw Node-API callbacks over `napi-sys`: the wrappers that `napi-derive`
//! generates take a process-wide lock and several times as long for each call. All `unsafe`
//! lives in [`js`]; every function here converts its arguments, calls one method of the core and
//! hands the result back.

mod clock;
mod decision;
mod error;
mod health;
mod http;
mod in_loop;
mod js;
mod limit;
mod limiter;
mod receipt;
mod wait;

use js::exports;

// lib/native.d.ts lists the same.
exports! {
    setErrorClass => error::set_class,
    errorKinds => error::kinds,
    limitParse => limit::parse,
    limitTokenBucket => limit::token_bucket,
    limitTokenBucketRefilled => limit::token_bucket_refilled,
    limitFixedWindow => limit::fixed_window,
    limitLeakyBucket => limit::leaky_bucket,
    limitSlidingWindow => limit::sliding_window,
    limitSlidingLog => limit::sliding_log,
    limitConcurrency => limit::concurrency,
    limitDeny => limit::deny,
    limitUnlimited => limit::unlimited,
    limitWithName => limit::with_name,
    limitWithScope => limit::with_scope,
    clockNew => clock::new,
    clockFree => clock::free,
    clockAdvanceMs => clock::advance_ms,
    clockAdvanceUs => clock::advance_us,
    clockSetUs => clock::set_us,
    clockNowUs => clock::now_us,
    limiterNew => limiter::new,
    limiterFree => limiter::free,
    limiterClose => limiter::close,
    limiterIsLocal => limiter::is_local,
    limiterKind => limiter::kind,
    limiterNames => limiter::names,
    limiterTexts => limiter::texts,
    limiterLongestDelays => limiter::longest_delays,
    limiterIsLeasing => limiter::is_leasing,
    limiterStats => limiter::stats,
    limiterNews => limiter::news,
    limiterHealthAsync => limiter::health_async,
    acquire => limiter::acquire,
    acquireHeld => limiter::acquire_held,
    peekHeld => limiter::peek_held,
    allow => limiter::allow,
    peek => limiter::peek,
    reset => limiter::reset,
    acquireMany => limiter::acquire_many,
    block => limiter::block,
    unblock => limiter::unblock,
    release => receipt::release,
    refund => receipt::refund,
    commit => receipt::commit,
    acquireAsync => in_loop::acquire_async,
    acquireHeldAsync => in_loop::acquire_held_async,
    peekHeldAsync => in_loop::peek_held_async,
    allowAsync => in_loop::allow_async,
    peekAsync => in_loop::peek_async,
    resetAsync => limiter::reset_async,
    acquireManyAsync => limiter::acquire_many_async,
    blockAsync => limiter::block_async,
    unblockAsync => limiter::unblock_async,
    releaseAsync => receipt::release_async,
    refundAsync => receipt::refund_async,
    commitAsync => receipt::commit_async,
    waiterNew => wait::new,
    waiterFree => wait::free,
    waiterStep => wait::step,
    waiterStepAsync => wait::step_async,
    decisionFree => decision::free,
    clientsNew => http::clients_new,
    clientsFree => http::clients_free,
    clientsHeader => http::clients_header,
    clientsKey => http::clients_key,
    answersNew => http::answers_new,
    answersFree => http::answers_free,
    answer => http::answer,
}
