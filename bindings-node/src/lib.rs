//! The Node addon of mirab: what `lib/*.js` calls.
//!
//! The functions are raw Node-API callbacks over `napi-sys`: the wrappers that `napi-derive`
//! generates take a process-wide lock and several times as long for each call. All `unsafe`
//! lives in [`js`]; every function here converts its arguments, calls one method of the core and
//! hands the result back.

mod clock;
mod decision;
mod error;
mod http;
mod js;
mod limit;
mod limiter;
mod receipt;
mod wait;

use js::Export;

/// Everything that the addon exports, by its JavaScript name; `lib/native.d.ts` lists the same.
const EXPORTS: &[Export] = &[
    Export::new(c"setErrorClass", error::set_class),
    Export::new(c"errorKinds", error::kinds),
    Export::new(c"limitParse", limit::parse),
    Export::new(c"limitTokenBucket", limit::token_bucket),
    Export::new(c"limitTokenBucketRefilled", limit::token_bucket_refilled),
    Export::new(c"limitFixedWindow", limit::fixed_window),
    Export::new(c"limitLeakyBucket", limit::leaky_bucket),
    Export::new(c"limitSlidingWindow", limit::sliding_window),
    Export::new(c"limitSlidingLog", limit::sliding_log),
    Export::new(c"limitConcurrency", limit::concurrency),
    Export::new(c"limitDeny", limit::deny),
    Export::new(c"limitUnlimited", limit::unlimited),
    Export::new(c"limitWithName", limit::with_name),
    Export::new(c"limitWithScope", limit::with_scope),
    Export::new(c"clockNew", clock::new),
    Export::new(c"clockFree", clock::free),
    Export::new(c"clockAdvanceMs", clock::advance_ms),
    Export::new(c"clockAdvanceUs", clock::advance_us),
    Export::new(c"clockSetUs", clock::set_us),
    Export::new(c"clockNowUs", clock::now_us),
    Export::new(c"limiterNew", limiter::new),
    Export::new(c"limiterFree", limiter::free),
    Export::new(c"limiterClose", limiter::close),
    Export::new(c"limiterIsLocal", limiter::is_local),
    Export::new(c"limiterNames", limiter::names),
    Export::new(c"limiterTexts", limiter::texts),
    Export::new(c"limiterLongestDelays", limiter::longest_delays),
    Export::new(c"limiterIsLeasing", limiter::is_leasing),
    Export::new(c"limiterStats", limiter::stats),
    Export::new(c"acquire", limiter::acquire),
    Export::new(c"acquireHeld", limiter::acquire_held),
    Export::new(c"allow", limiter::allow),
    Export::new(c"peek", limiter::peek),
    Export::new(c"reset", limiter::reset),
    Export::new(c"acquireMany", limiter::acquire_many),
    Export::new(c"block", limiter::block),
    Export::new(c"unblock", limiter::unblock),
    Export::new(c"release", receipt::release),
    Export::new(c"refund", receipt::refund),
    Export::new(c"commit", receipt::commit),
    Export::new(c"acquireAsync", limiter::acquire_async),
    Export::new(c"acquireHeldAsync", limiter::acquire_held_async),
    Export::new(c"allowAsync", limiter::allow_async),
    Export::new(c"peekAsync", limiter::peek_async),
    Export::new(c"resetAsync", limiter::reset_async),
    Export::new(c"acquireManyAsync", limiter::acquire_many_async),
    Export::new(c"blockAsync", limiter::block_async),
    Export::new(c"unblockAsync", limiter::unblock_async),
    Export::new(c"releaseAsync", receipt::release_async),
    Export::new(c"refundAsync", receipt::refund_async),
    Export::new(c"commitAsync", receipt::commit_async),
    Export::new(c"waiterNew", wait::new),
    Export::new(c"waiterFree", wait::free),
    Export::new(c"waiterStep", wait::step),
    Export::new(c"waiterStepAsync", wait::step_async),
    Export::new(c"decisionFree", decision::free),
    Export::new(c"httpHeaders", http::headers),
    Export::new(c"httpClientKey", http::client_key),
];
