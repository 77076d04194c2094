/* Policies: one decision of several limits, and where each of them stands. */
#include "check.h"

static mirab_error error;
static mirab_manual_clock *clock;

static void stands(const mirab_standing *standing, uint64_t limit, uint64_t used, uint64_t reset_after_us,
                   uint64_t next_after_us) {
    CHECK_NUMBER(standing->limit, limit);
    CHECK_NUMBER(standing->used, used);
    CHECK_NUMBER(standing->remaining, limit - used);
    CHECK_NUMBER(standing->reset_after_us, reset_after_us);
    CHECK_NUMBER(standing->next_after_us, next_after_us);
    for (size_t i = 0; i < 3; i++) CHECK_NUMBER(standing->_reserved[i], 0);
}

/* All take, or none does; the strictest is told, and each stands where it says. */
static void together(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "10/second; leaky_bucket: 4/second queue 9; sliding_window: 9/minute;"
                                        "sliding_log: 8/minute; c=concurrency: 3 for 20s",
                                        store);
    mirab_decision decision;
    mirab_standing standings[MIRAB_MAX_LIMITS];
    uint32_t count;
    const char *name;

    CHECK_OK(mirab_limiter_limit_count(limiter, &error, &count));
    CHECK_NUMBER(count, 5);
    CHECK_OK(mirab_limiter_peek_with_standings(limiter, bytes("k"), 1, 2, &error, &decision, standings, 5));
    CHECK(decision.allowed);
    stands(&standings[0], 10, 0, 0, MIRAB_NO_NEXT);
    stands(&standings[4], 3, 0, 0, MIRAB_NO_NEXT);

    memset(standings, 0x55, sizeof standings);
    CHECK_OK(mirab_limiter_acquire_with_standings(limiter, bytes("k"), 1, 2, &error, &decision, standings,
                                                  MIRAB_MAX_LIMITS));
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.limit_index, 4);
    CHECK_NUMBER(decision.limit, 3);
    CHECK_NUMBER(decision.remaining, 1);
    CHECK_NUMBER(decision.delay_us, 0);
    stands(&standings[0], 10, 2, 200000, 100000);
    stands(&standings[1], 10, 2, 500000, 250000);
    stands(&standings[2], 9, 2, 119000000, 89000000);
    stands(&standings[3], 8, 2, 60000000, 60000000);
    stands(&standings[4], 3, 2, 20000000, 20000000);
    for (size_t i = 5; i < MIRAB_MAX_LIMITS; i++) CHECK_NUMBER(standings[i].limit, 0x5555555555555555);

    CHECK_OK(mirab_limiter_acquire_with_standings(limiter, bytes("k"), 1, 2, &error, &decision, standings, 5));
    CHECK(!decision.allowed && !decision.never);
    CHECK_NUMBER(decision.retry_after_us, 20000000);
    CHECK_OK(mirab_limiter_limit_name(limiter, decision.limit_index, &error, &name));
    CHECK_TEXT(name, "c");
    for (size_t i = 0; i < 5; i++) CHECK_NUMBER(standings[i].used, 2);

    /* The queue of the leaky bucket makes the next one wait. */
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, 1, &error, &decision));
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.delay_us, 500000);
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, 9, &error, &decision));
    CHECK(decision.never);
    mirab_limiter_free(limiter);
}

/* Without room nothing is decided; with it nothing beyond is written. */
static void room(void) {
    mirab_limiter *limiter = limiter_by(clock, "5/minute; 9/hour", "memory:");
    mirab_decision decision = {.remaining = 77};
    mirab_standing standings[2] = {{.limit = 88}, {.limit = 99}};
    CHECK_FAILS(mirab_limiter_acquire_with_standings(limiter, bytes("k"), 1, 1, &error, &decision, standings, 1),
                MIRAB_INVALID_ARGUMENT, "room for 2, not for 1");
    CHECK_FAILS(mirab_limiter_peek_with_standings(limiter, bytes("k"), 1, 1, &error, &decision, standings, 0),
                MIRAB_INVALID_ARGUMENT, "room for 2, not for 0");
    CHECK_FAILS(mirab_limiter_acquire_with_standings(limiter, bytes("k"), 1, -1, &error, &decision, standings, 2),
                MIRAB_INVALID_ARGUMENT, "cost must be 0 or more, not -1");
    CHECK(decision.remaining == 77 && standings[0].limit == 88 && standings[1].limit == 99);
    CHECK_OK(mirab_limiter_peek_with_standings(limiter, bytes("k"), 1, 1, &error, &decision, standings, 2));
    stands(&standings[0], 5, 0, 0, MIRAB_NO_NEXT);
    stands(&standings[1], 9, 0, 0, MIRAB_NO_NEXT);
    mirab_limiter_free(limiter);
}

/* The last of seven limits refuses: the other six were not charged. */
static void none_of_seven(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "20/hour; leaky_bucket: 20/hour queue 19; fixed_window: 20/hour;"
                                        "sliding_window: 20/hour; sliding_log: 20/hour;"
                                        "concurrency: 20 for 1 hour; sliding_log: 1/hour",
                                        store);
    mirab_decision decision;
    mirab_standing standings[7];
    for (int i = 0; i < 3; i++) {
        CHECK_OK(mirab_limiter_acquire_with_standings(limiter, bytes("k"), 1, 1, &error, &decision, standings, 7));
        CHECK(decision.allowed == (i == 0));
        CHECK_NUMBER(decision.limit_index, 6);
        for (size_t at = 0; at < 7; at++) CHECK_NUMBER(standings[at].used, 1);
    }
    mirab_limiter_free(limiter);
}

static void sixteen(const char *store) {
    char limits[512] = "";
    for (int i = 0; i < MIRAB_MAX_LIMITS; i++) {
        const size_t length = strlen(limits);
        snprintf(limits + length, sizeof limits - length, "%d/hour;", 20 + i);
    }
    limits[strlen(limits) - 1] = '\0';
    mirab_limiter *limiter = limiter_by(clock, limits, store), *none = NULL;
    mirab_decision decision;
    mirab_standing standings[MIRAB_MAX_LIMITS];
    CHECK_OK(mirab_limiter_reset(limiter, bytes("k"), 1, &error)); /* an earlier scene has used 20/hour, too */
    CHECK_OK(mirab_limiter_acquire_with_standings(limiter, bytes("k"), 1, 5, &error, &decision, standings,
                                                  MIRAB_MAX_LIMITS));
    CHECK_NUMBER(decision.limit_index, 0);
    for (uint64_t i = 0; i < MIRAB_MAX_LIMITS; i++) {
        CHECK_NUMBER(standings[i].limit, 20 + i);
        CHECK_NUMBER(standings[i].remaining, 15 + i);
    }
    mirab_limiter_free(limiter);
    strcat(limits, ";99/hour");
    CHECK_FAILS(mirab_limiter_new(limits, store, NULL, &error, &none), MIRAB_INVALID_LIMIT, "17 limits");
    CHECK(none == NULL);
}

int main(void) {
    const char *stores[] = {"memory:standing", test_shm(), test_redis()};
    CHECK_OK(mirab_manual_clock_new(1000000, &error, &clock));
    for (size_t i = 0; i < 3; i++) {
        SCENE(together(stores[i]));
        SCENE(none_of_seven(stores[i]));
        SCENE(sixteen(stores[i]));
    }
    SCENE(room());
    mirab_manual_clock_free(clock);
    return tell(0);
}
