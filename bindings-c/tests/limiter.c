/* Every operation of a limiter, on memory and on Redis, by a clock that stands still. */
#include "check.h"

static mirab_error error;

/* What comes after a decision, and what is about no decision. */
static void closed(const mirab_limiter *limiter, mirab_decision *decision) {
    const uint8_t *keys[] = {bytes("k")};
    const size_t lens[] = {1};
    mirab_decision other;
    CHECK_FAILS(mirab_limiter_wait(limiter, bytes("k"), 1, 1, MIRAB_FOREVER, &error, &other), MIRAB_CLOSED, "closed");
    CHECK_FAILS(mirab_limiter_acquire_many(limiter, keys, lens, NULL, 1, &error, &other), MIRAB_CLOSED, "closed");
    CHECK_FAILS(mirab_limiter_refund(limiter, bytes("user:42"), 7, decision, &error, NULL), MIRAB_CLOSED, "closed");
    CHECK_FAILS(mirab_limiter_commit(limiter, bytes("user:42"), 7, decision, 0, &error), MIRAB_CLOSED, "closed");
    CHECK_FAILS(mirab_limiter_release(limiter, bytes("user:42"), 7, decision, &error, NULL), MIRAB_CLOSED, "closed");
    CHECK_FAILS(mirab_limiter_block(limiter, bytes("k"), 1, 1, &error), MIRAB_CLOSED, "closed");
    CHECK_FAILS(mirab_limiter_unblock(limiter, bytes("k"), 1, &error), MIRAB_CLOSED, "closed");
}

static void operations(const char *store) {
    mirab_manual_clock *clock;
    mirab_options *options;
    mirab_limiter *limiter;
    mirab_decision decision;
    bool allowed = false;

    CHECK_OK(mirab_manual_clock_new(1000000, &error, &clock));
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_OK(mirab_options_set_manual_clock(options, clock, &error));
    CHECK_OK(mirab_options_set_on_store_failure(options, "raise", &error));
    CHECK_OK(mirab_limiter_new("1/second burst 5", store, options, &error, &limiter));
    mirab_options_free(options);

    CHECK_OK(mirab_limiter_acquire(limiter, bytes("user:42"), 7, 2, &error, &decision));
    CHECK(decision.allowed && !decision.never && !decision.degraded);
    CHECK_NUMBER(decision.limit, 5);
    CHECK_NUMBER(decision.used, 2);
    CHECK_NUMBER(decision.remaining, 3);
    CHECK_NUMBER(decision.retry_after_us, MIRAB_NO_RETRY);
    CHECK_NUMBER(decision.reset_after_us, 2000000);
    CHECK_NUMBER(decision.delay_us, 0);
    for (size_t i = 0; i < 1; i++) CHECK_NUMBER(decision._reserved[i], 0);

    CHECK_OK(mirab_limiter_allow(limiter, bytes("user:42"), 7, 3, &error, &allowed));
    CHECK(allowed);
    CHECK_OK(mirab_limiter_allow(limiter, bytes("user:42"), 7, 1, &error, &allowed));
    CHECK(!allowed);

    /* A refusal is no failure, takes nothing and promises its instant. */
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("user:42"), 7, 2, &error, &decision));
    CHECK(!decision.allowed && !decision.never);
    CHECK_NUMBER(decision.used, 5);
    CHECK_NUMBER(decision.retry_after_us, 2000000);
    CHECK_OK(mirab_manual_clock_advance_us(clock, 1999999, &error));
    CHECK_OK(mirab_limiter_peek(limiter, bytes("user:42"), 7, 2, &error, &decision));
    CHECK(!decision.allowed);
    CHECK_NUMBER(decision.retry_after_us, 1);
    CHECK_OK(mirab_manual_clock_advance_us(clock, 1, &error));
    CHECK_OK(mirab_limiter_peek(limiter, bytes("user:42"), 7, 2, &error, &decision));
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.remaining, 2);

    /* Above the capacity: never. Cost 0 always passes. */
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("user:42"), 7, 6, &error, &decision));
    CHECK(!decision.allowed && decision.never);
    CHECK_NUMBER(decision.retry_after_us, MIRAB_NO_RETRY);
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("user:42"), 7, 2, &error, &decision));
    CHECK(decision.allowed);
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("user:42"), 7, 0, &error, &decision));
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.remaining, 0);

    CHECK_OK(mirab_limiter_reset(limiter, bytes("user:42"), 7, &error));
    CHECK_OK(mirab_limiter_reset(limiter, bytes("never seen"), 10, &error));
    CHECK_OK(mirab_limiter_peek(limiter, bytes("user:42"), 7, 1, &error, &decision));
    CHECK_NUMBER(decision.remaining, 5);

    CHECK_OK(mirab_limiter_close(limiter, &error));
    CHECK_OK(mirab_limiter_close(limiter, &error));
    CHECK_FAILS(mirab_limiter_acquire(limiter, bytes("k"), 1, 1, &error, &decision), MIRAB_CLOSED, "closed");
    CHECK_FAILS(mirab_limiter_allow(limiter, bytes("k"), 1, 1, &error, &allowed), MIRAB_CLOSED, "closed");
    CHECK_FAILS(mirab_limiter_peek(limiter, bytes("k"), 1, 1, &error, &decision), MIRAB_CLOSED, "closed");
    CHECK_FAILS(mirab_limiter_reset(limiter, bytes("k"), 1, &error), MIRAB_CLOSED, "closed");
    closed(limiter, &decision);
    mirab_limiter_free(limiter);
    mirab_manual_clock_free(clock);
}

/* `memory:` is a limiter's own, `memory:NAME` is shared in the process. */
static void sharing(void) {
    static const struct {
        const char *store;
        uint64_t left;
    } cases[] = {{"memory:", 4}, {"memory:shared", 3}};
    for (size_t i = 0; i < 2; i++) {
        mirab_limiter *one, *two;
        mirab_decision decision;
        CHECK_OK(mirab_limiter_new("5/hour", cases[i].store, NULL, &error, &one));
        CHECK_OK(mirab_limiter_new("5/hour", cases[i].store, NULL, &error, &two));
        CHECK_OK(mirab_limiter_acquire(one, bytes("k"), 1, 1, &error, &decision));
        CHECK_OK(mirab_limiter_acquire(two, bytes("k"), 1, 1, &error, &decision));
        CHECK_NUMBER(decision.remaining, cases[i].left);
        mirab_limiter_free(one);
        mirab_limiter_free(two);
    }
}

int main(void) {
    SCENE(operations("memory:"));
    SCENE(operations(test_shm()));
    SCENE(operations(test_redis()));
    SCENE(sharing());
    return tell(0);
}
