/* What was taken is given back, or settled at another cost: once, and never above full. */
#include "check.h"

#include <unistd.h>

static mirab_error error;
static mirab_manual_clock *clock;

static const char *every[] = {"10/minute",
                              "leaky_bucket: 10/minute queue 9",
                              "fixed_window: 10/minute",
                              "fixed_window: 10/minute from first",
                              "sliding_window: 10/minute",
                              "sliding_log: 10/minute",
                              "sliding_log: 10/minute buckets 6",
                              "concurrency: 10 for 60s"};
enum { EVERY = sizeof every / sizeof every[0], LEAKY = 1, CONCURRENCY = 7 };

static mirab_decision acquire(const mirab_limiter *limiter, int64_t cost) {
    mirab_decision decision;
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, cost, &error, &decision));
    return decision;
}

static uint64_t refund(const mirab_limiter *limiter, mirab_decision *decision) {
    uint64_t units = 99;
    CHECK_OK(mirab_limiter_refund(limiter, bytes("k"), 1, decision, &error, &units));
    return units;
}

static void commit(const mirab_limiter *limiter, mirab_decision *decision, int64_t actual) {
    CHECK_OK(mirab_limiter_commit(limiter, bytes("k"), 1, decision, actual, &error));
}

static uint64_t used(const mirab_limiter *limiter) {
    mirab_decision decision;
    CHECK_OK(mirab_limiter_peek(limiter, bytes("k"), 1, 1, &error, &decision));
    /* Only asked: nothing is there to give back. */
    CHECK_NUMBER(refund(limiter, &decision), 0);
    return decision.used;
}

static void not_its_own(const mirab_limiter *limiter, const char *key, mirab_decision *decision) {
    const mirab_decision before = *decision;
    CHECK_FAILS(mirab_limiter_refund(limiter, bytes(key), strlen(key), decision, &error, NULL),
                MIRAB_INVALID_ARGUMENT, "one that this limiter gave for this key");
    CHECK_FAILS(mirab_limiter_commit(limiter, bytes(key), strlen(key), decision, 0, &error),
                MIRAB_INVALID_ARGUMENT, "one that this limiter gave for this key");
    CHECK(memcmp(&before, decision, sizeof before) == 0);
}

static void once(const char *limits, bool leaky, const char *store) {
    mirab_limiter *limiter = limiter_by(clock, limits, store);
    /* Of a queue the first is being served; only what waits may leave. */
    const uint64_t served = leaky ? acquire(limiter, 1).used : 0;
    mirab_decision decision = acquire(limiter, 4), before = decision;
    CHECK(decision.allowed);
    not_its_own(limiter, "other key", &decision);
    not_its_own(limiter, "", &decision);
    CHECK_NUMBER(refund(limiter, &decision), 4);
    CHECK_NUMBER(refund(limiter, &decision), 0);
    commit(limiter, &decision, 9);
    CHECK_NUMBER(used(limiter), served);

    /* The mark is all that has changed. */
    CHECK_NUMBER(decision._settled, 1);
    decision._settled = 0;
    CHECK(memcmp(&before, &decision, sizeof before) == 0);

    mirab_decision refused = acquire(limiter, 11), nothing = acquire(limiter, 0), zero = {0};
    CHECK(refused.never && nothing.allowed);
    CHECK_NUMBER(refund(limiter, &refused), 0);
    CHECK_NUMBER(refund(limiter, &nothing), 0);
    CHECK_NUMBER(refund(limiter, &zero), 0);
    commit(limiter, &refused, 9);
    commit(limiter, &nothing, 9);
    commit(limiter, &zero, 9);
    CHECK_NUMBER(used(limiter), served);

    /* Nobody has to ask how many units there were. */
    mirab_decision last = acquire(limiter, 3);
    CHECK_OK(mirab_limiter_refund(limiter, bytes("k"), 1, &last, &error, NULL));
    CHECK_NUMBER(used(limiter), served);
    mirab_limiter_free(limiter);
}

/* Much later nothing of it counts: what others took since stays taken. */
static void expired(const char *limits, const char *store) {
    mirab_limiter *limiter = limiter_by(clock, limits, store);
    CHECK_OK(mirab_limiter_reset(limiter, bytes("k"), 1, &error));
    mirab_decision old = acquire(limiter, 3);
    CHECK_OK(mirab_manual_clock_advance_us(clock, 600000000, &error));
    CHECK(acquire(limiter, 2).allowed);
    CHECK_NUMBER(refund(limiter, &old), 0);
    CHECK_NUMBER(used(limiter), 2);
    mirab_limiter_free(limiter);
}

static void at_another_cost(const char *limits, bool leaky, const char *store) {
    mirab_limiter *limiter = limiter_by(clock, limits, store);
    CHECK_OK(mirab_limiter_reset(limiter, bytes("k"), 1, &error));
    const uint64_t served = leaky ? acquire(limiter, 1).used : 0;
    mirab_decision less = acquire(limiter, 4);
    commit(limiter, &less, 1);
    CHECK_NUMBER(used(limiter), served + 1);
    commit(limiter, &less, 0);
    CHECK_NUMBER(refund(limiter, &less), 0);
    CHECK_NUMBER(used(limiter), served + 1);

    mirab_decision more = acquire(limiter, 2);
    commit(limiter, &more, 5);
    CHECK_NUMBER(used(limiter), served + 6);

    /* What can't be a cost leaves it open. */
    mirab_decision far_more = acquire(limiter, 1);
    CHECK_FAILS(mirab_limiter_commit(limiter, bytes("k"), 1, &far_more, -3, &error), MIRAB_INVALID_ARGUMENT,
                "actual_cost must be 0 or more, not -3");
    CHECK_FAILS(mirab_limiter_commit(limiter, bytes("k"), 1, &far_more, (INT64_C(1) << 53) + 1, &error),
                MIRAB_INVALID_ARGUMENT, "9007199254740993");
    commit(limiter, &far_more, INT64_C(1) << 53);
    CHECK_NUMBER(used(limiter), 10);
    CHECK_FAILS(mirab_limiter_commit(limiter, bytes("k"), 1, &far_more, (INT64_C(1) << 53) + 1, &error),
                MIRAB_INVALID_ARGUMENT, "9007199254740993");
    mirab_limiter_free(limiter);
}

/* A refund ends leases too; a commit leaves them to be released. */
static void with_leases(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "9/minute; c=concurrency: 8 for 30s", store);
    mirab_decision first = acquire(limiter, 3), second = acquire(limiter, 2), third = acquire(limiter, 1);
    mirab_standing standings[2];
    uint64_t ended;
    CHECK_NUMBER(refund(limiter, &first), 3);
    CHECK_OK(mirab_limiter_release(limiter, bytes("k"), 1, &first, &error, &ended));
    CHECK_NUMBER(ended, 0);
    commit(limiter, &second, 1);
    CHECK_OK(mirab_limiter_release(limiter, bytes("k"), 1, &third, &error, &ended));
    CHECK_NUMBER(ended, 1);

    CHECK_OK(mirab_limiter_peek_with_standings(limiter, bytes("k"), 1, 1, &error, &second, standings, 2));
    CHECK_NUMBER(standings[0].used, 2);
    CHECK_NUMBER(standings[1].used, 2);
    CHECK_NUMBER(refund(limiter, &third), 1);
    CHECK_OK(mirab_limiter_peek_with_standings(limiter, bytes("k"), 1, 1, &error, &second, standings, 2));
    CHECK_NUMBER(standings[0].used, 1);
    CHECK_NUMBER(standings[1].used, 2);
    mirab_limiter_free(limiter);
}

/* A decision that nobody filled gives nothing back, whatever its bytes say; nor one of other limits. */
static void foreign(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "8/minute", store), *other = limiter_by(clock, "7/minute", store);
    mirab_decision taken = acquire(limiter, 5), its = acquire(other, 5);
    CHECK(taken.allowed);
    for (int byte = 1; byte < 256; byte++) {
        mirab_decision garbage;
        memset(&garbage, byte, sizeof garbage);
        not_its_own(limiter, "k", &garbage);
    }
    not_its_own(limiter, "k", &its);
    not_its_own(other, "k", &taken);
    CHECK_NUMBER(used(limiter), 5);
    CHECK_NUMBER(used(other), 5);
    mirab_limiter_free(limiter);
    mirab_limiter_free(other);
}

static void redis_cli(const char *commands) {
    char line[512];
    snprintf(line, sizeof line, "printf '%s' | redis-cli -u %s >/dev/null", commands, getenv("MIRAB_TEST_REDIS"));
    CHECK(system(line) == 0);
}

/* What the store surely did not do, since the value isn't its own, can be given back again. */
static void surely_not_done(void) {
    char store[256], spoil[256], mend[128];
    const int run = (int)getpid();
    snprintf(store, sizeof store, "%s?timeout_ms=5000&prefix=spoilt%d", getenv("MIRAB_TEST_REDIS"), run);
    snprintf(spoil, sizeof spoil, "RENAME spoilt%d1t:{k}t5/60 kept%d\\nSET spoilt%d1t:{k}t5/60 junk\\n", run, run, run);
    snprintf(mend, sizeof mend, "RENAME kept%d spoilt%d1t:{k}t5/60\\n", run, run);
    mirab_limiter *limiter = limiter_by(clock, "5/minute", store);
    mirab_decision taken = acquire(limiter, 2), other = acquire(limiter, 2);
    redis_cli(spoil);
    for (int turn = 0; turn < 2; turn++) {
        CHECK_FAILS(mirab_limiter_refund(limiter, bytes("k"), 1, &taken, &error, NULL), MIRAB_STORE_CORRUPT, "t5/60");
        CHECK_FAILS(mirab_limiter_commit(limiter, bytes("k"), 1, &other, 1, &error), MIRAB_STORE_CORRUPT, "t5/60");
    }
    redis_cli(mend);
    CHECK_NUMBER(refund(limiter, &taken), 2);
    CHECK_NUMBER(refund(limiter, &taken), 0);
    commit(limiter, &other, 1);
    CHECK_NUMBER(used(limiter), 1);
    mirab_limiter_free(limiter);
}

/* A limiter that is closed, or of another store, has done nothing: it stays open. */
static void not_done(void) {
    mirab_limiter *here = limiter_by(clock, "5/minute", "memory:not_done");
    mirab_limiter *twin = limiter_by(clock, "5/minute", "memory:not_done");
    mirab_limiter *away = limiter_by(clock, "5/minute", "redis://127.0.0.1:1?timeout_ms=500");
    mirab_decision first = acquire(here, 1), second = acquire(here, 1);
    CHECK_OK(mirab_limiter_close(twin, &error));
    CHECK_FAILS(mirab_limiter_refund(twin, bytes("k"), 1, &first, &error, NULL), MIRAB_CLOSED, "closed");
    CHECK_FAILS(mirab_limiter_commit(twin, bytes("k"), 1, &first, 0, &error), MIRAB_CLOSED, "closed");
    CHECK_NUMBER(refund(here, &first), 1);
    CHECK_FAILS(mirab_limiter_refund(away, bytes("k"), 1, &second, &error, NULL), MIRAB_INVALID_ARGUMENT,
                "another limiter");
    CHECK_NUMBER(refund(here, &second), 1);
    CHECK_NUMBER(used(here), 0);
    mirab_limiter_free(here);
    mirab_limiter_free(twin);
    mirab_limiter_free(away);
}

static uint32_t broken_clock(void *broken, uint64_t *now_us) {
    *now_us = 1000000;
    return *(bool *)broken;
}

/* The clock is read only where there is something to settle, and without it that stays open. */
static void without_time(void) {
    bool broken = false;
    mirab_options *options;
    mirab_limiter *limiter;
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_OK(mirab_options_set_clock_callback(options, broken_clock, &broken, &error));
    CHECK_OK(mirab_limiter_new("5/minute", "memory:", options, &error, &limiter));
    mirab_options_free(options);
    mirab_decision decision = acquire(limiter, 4), refused = acquire(limiter, 4);
    broken = true;
    CHECK_NUMBER(refund(limiter, &refused), 0);
    commit(limiter, &refused, 1);
    CHECK_FAILS(mirab_limiter_refund(limiter, bytes("k"), 1, &decision, &error, NULL), MIRAB_INVALID_ARGUMENT,
                "returned 1");
    CHECK_FAILS(mirab_limiter_commit(limiter, bytes("k"), 1, &decision, 1, &error), MIRAB_INVALID_ARGUMENT,
                "returned 1");
    broken = false;
    CHECK_NUMBER(refund(limiter, &decision), 4);
    mirab_limiter_free(limiter);
}

int main(void) {
    const char *stores[] = {"memory:settle", test_shm(), test_redis()};
    CHECK_OK(mirab_manual_clock_new(0, &error, &clock));
    for (size_t i = 0; i < 3; i++) {
        for (int at = 0; at < EVERY; at++) {
            SCENE(once(every[at], at == LEAKY, stores[i]));
            SCENE(expired(every[at], stores[i]));
            if (at != CONCURRENCY) SCENE(at_another_cost(every[at], at == LEAKY, stores[i]));
        }
        SCENE(with_leases(stores[i]));
        SCENE(foreign(stores[i]));
    }
    SCENE(surely_not_done());
    SCENE(not_done());
    SCENE(without_time());
    mirab_manual_clock_free(clock);
    return tell(0);
}
