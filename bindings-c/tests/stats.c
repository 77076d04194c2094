/* How often a limiter answered what, and a store in memory that cannot be filled. */
#include "check.h"

static mirab_error error;
static mirab_manual_clock *clock;

static mirab_stats stats_of(const mirab_limiter *limiter) {
    mirab_stats stats;
    memset(&stats, 0x55, sizeof stats);
    CHECK_OK(mirab_limiter_stats(limiter, &error, &stats));
    for (size_t i = 0; i < 7; i++) CHECK_NUMBER(stats._reserved[i], 0);
    return stats;
}

static mirab_decision acquire(const mirab_limiter *limiter, const char *key, int64_t cost) {
    mirab_decision decision;
    CHECK_OK(mirab_limiter_acquire(limiter, bytes(key), strlen(key), cost, &error, &decision));
    return decision;
}

static void counts(const char *store, uint64_t keys) {
    mirab_limiter *limiter = limiter_by(clock, "5/minute", store), *other = limiter_by(clock, "7/minute", store);
    mirab_stats stats = stats_of(limiter);
    CHECK(!stats.allowed && !stats.refused && !stats.never && !stats.blocked && !stats.errors && !stats.refunded);

    bool allowed;
    const uint8_t *both[] = {bytes("a"), bytes("b")};
    const size_t lens[] = {1, 1};
    mirab_decision decisions[2], decision = acquire(limiter, "a", 3);
    CHECK_OK(mirab_limiter_commit(limiter, bytes("a"), 1, &decision, 2, &error));
    CHECK_OK(mirab_limiter_acquire_many(limiter, both, lens, NULL, 2, &error, decisions));
    CHECK_OK(mirab_limiter_refund(limiter, bytes("b"), 1, &decisions[1], &error, NULL));
    CHECK_OK(mirab_limiter_refund(limiter, bytes("b"), 1, &decisions[1], &error, NULL));
    CHECK_OK(mirab_limiter_allow(limiter, bytes("a"), 1, 2, &error, &allowed));
    CHECK_OK(mirab_limiter_allow(limiter, bytes("a"), 1, 1, &error, &allowed));
    acquire(limiter, "a", 2);
    acquire(limiter, "a", 6);
    CHECK_OK(mirab_limiter_block(limiter, bytes("c"), 1, 1000000, &error));
    acquire(limiter, "c", 1);
    CHECK_OK(mirab_limiter_peek(limiter, bytes("a"), 1, 1, &error, &decision));
    acquire(other, "a", 1);

    CHECK_OK(mirab_limiter_close(limiter, &error));
    stats = stats_of(limiter);
    CHECK_NUMBER(stats.allowed, 4);
    CHECK_NUMBER(stats.refused, 2);
    CHECK_NUMBER(stats.never, 1);
    CHECK_NUMBER(stats.blocked, 1);
    CHECK_NUMBER(stats.errors, 0);
    CHECK_NUMBER(stats.degraded, 0);
    CHECK_NUMBER(stats.refunded, 2);
    CHECK(keys == 0 ? stats.keys == 0 : stats.keys >= keys);
    CHECK_NUMBER(stats.evicted, 0);
    CHECK_NUMBER(stats_of(other).allowed, 1);
    mirab_limiter_free(limiter);
    mirab_limiter_free(other);
}

/* What a store that is away doesn't decide is an error, or decided in its place. */
static void without_the_store(void) {
    const char *nobody = "redis://127.0.0.1:1?timeout_ms=500";
    mirab_limiter *strict = limiter_on("5/minute", nobody), *local = limiter_that("local", NULL, "5/minute", nobody);
    mirab_decision decision;
    CHECK_FAILS(mirab_limiter_acquire(strict, bytes("k"), 1, 1, &error, &decision), MIRAB_STORE_UNAVAILABLE, "");
    CHECK(acquire(local, "k", 5).allowed);
    CHECK(!acquire(local, "k", 5).allowed);
    CHECK(acquire(local, "k", 6).never);
    CHECK_OK(mirab_limiter_peek(local, bytes("k"), 1, 1, &error, &decision));
    const mirab_stats errors = stats_of(strict), stats = stats_of(local);
    CHECK(errors.errors == 1 && errors.degraded == 0);
    CHECK(stats.allowed == 1 && stats.refused == 1 && stats.never == 1 && stats.errors == 0);
    CHECK_NUMBER(stats.degraded, 3);
    mirab_limiter_free(strict);
    mirab_limiter_free(local);
}

/* Fresh keys push each other out, and never him who owes most. */
static void forgotten(void) {
    mirab_limiter *limiter = limiter_by(clock, "10/hour", "memory:forgotten?max_keys=64");
    char key[16];
    acquire(limiter, "indebted", 10);
    CHECK_OK(mirab_limiter_block(limiter, bytes("blocked"), 7, 1000000, &error));
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof key, "fresh %d", i);
        CHECK(acquire(limiter, key, 1).allowed);
    }
    const mirab_stats stats = stats_of(limiter);
    CHECK(stats.keys <= 65 && stats.evicted >= 5000 - 64);
    CHECK(!acquire(limiter, "indebted", 1).allowed);
    CHECK_NUMBER(acquire(limiter, "blocked", 0).limit_index, MIRAB_LIMIT_BLOCK);
    mirab_limiter_free(limiter);
}

static void full(void) {
    mirab_limiter *limiter = limiter_by(clock, "2/hour", "memory:?max_keys=100&when_full=refuse");
    mirab_decision decision;
    char key[16];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "key %d", i);
        CHECK(acquire(limiter, key, 1).allowed);
    }
    CHECK_FAILS(mirab_limiter_acquire(limiter, bytes("new"), 3, 1, &error, &decision), MIRAB_STORE_FULL, "100");
    CHECK(acquire(limiter, "key 7", 1).allowed);
    const mirab_stats stats = stats_of(limiter);
    CHECK(stats.keys == 100 && stats.evicted == 1 && stats.errors == 1);

    /* In a step of several nothing is taken when one has no room. */
    const uint8_t *keys[] = {bytes("key 9"), bytes("new")};
    const size_t lens[] = {5, 3};
    mirab_decision decisions[2];
    CHECK_FAILS(mirab_limiter_acquire_many(limiter, keys, lens, NULL, 2, &error, decisions), MIRAB_STORE_FULL,
                "item 1: ");
    CHECK_OK(mirab_limiter_peek(limiter, keys[0], lens[0], 1, &error, &decision));
    CHECK_NUMBER(decision.used, 1);

    /* What says nothing any more makes room. */
    CHECK_OK(mirab_manual_clock_advance_us(clock, 3600000000, &error));
    CHECK(acquire(limiter, "new", 1).allowed);
    mirab_limiter_free(limiter);
}

static void unusable(const char *store, const char *part) {
    mirab_limiter *limiter = NULL;
    CHECK_FAILS(mirab_limiter_new("5/minute", store, NULL, &error, &limiter), MIRAB_INVALID_URI, part);
    CHECK(limiter == NULL);
}

int main(void) {
    CHECK_OK(mirab_manual_clock_new(1000000, &error, &clock));
    SCENE(counts("memory:stats", 2));
    SCENE(counts(test_shm(), 2));
    SCENE(counts(test_redis(), 0));
    SCENE(without_the_store());
    SCENE(forgotten());
    SCENE(full());
    SCENE(unusable("memory:?max_keys=0", "max_keys"));
    SCENE(unusable("memory:?max_keys=many", "many"));
    SCENE(unusable("memory:?when_full=shrug", "shrug"));
    mirab_manual_clock_free(clock);
    return tell(0);
}
