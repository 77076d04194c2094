/* A key that is blocked is refused until its instant, whatever its limits say. */
#include "check.h"

static mirab_error error;
static mirab_manual_clock *clock;

static mirab_decision acquire(const mirab_limiter *limiter, int64_t cost) {
    mirab_decision decision;
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, cost, &error, &decision));
    return decision;
}

static void is_blocked(const mirab_limiter *limiter, const mirab_decision *decision, uint64_t for_us) {
    const char *name;
    CHECK(!decision->allowed && !decision->never);
    CHECK_NUMBER(decision->limit_index, MIRAB_LIMIT_BLOCK);
    CHECK_NUMBER(decision->limit, 0);
    CHECK_NUMBER(decision->used, 0);
    CHECK_NUMBER(decision->remaining, 0);
    CHECK_NUMBER(decision->retry_after_us, for_us);
    CHECK_NUMBER(decision->reset_after_us, for_us);
    CHECK_NUMBER(decision->delay_us, 0);
    CHECK_OK(mirab_limiter_limit_name(limiter, decision->limit_index, &error, &name));
    CHECK_TEXT(name, "block");
}

static void until_its_end(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "5/minute; unlimited", store);
    mirab_limiter *another = limiter_by(clock, "sliding_log: 8/hour", store);
    mirab_decision before = acquire(limiter, 2), decision;
    bool allowed = true;
    uint64_t units;

    CHECK_OK(mirab_limiter_block(limiter, bytes("k"), 1, 30000000, &error));
    decision = acquire(limiter, 1);
    is_blocked(limiter, &decision, 30000000);
    CHECK_OK(mirab_limiter_refund(limiter, bytes("k"), 1, &decision, &error, &units));
    CHECK_NUMBER(units, 0);
    CHECK_OK(mirab_limiter_allow(limiter, bytes("k"), 1, 1, &error, &allowed));
    CHECK(!allowed);
    decision = acquire(limiter, 0);
    is_blocked(limiter, &decision, 30000000);
    CHECK_OK(mirab_limiter_peek(limiter, bytes("k"), 1, 0, &error, &decision));
    is_blocked(limiter, &decision, 30000000);
    decision = acquire(another, 1);
    is_blocked(another, &decision, 30000000);
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("kk"), 2, 1, &error, &decision));
    CHECK(decision.allowed);

    /* What was taken before can be given back. */
    CHECK_OK(mirab_limiter_refund(limiter, bytes("k"), 1, &before, &error, &units));
    CHECK_NUMBER(units, 2);

    CHECK_OK(mirab_manual_clock_advance_us(clock, 29999999, &error));
    decision = acquire(limiter, 1);
    is_blocked(limiter, &decision, 1);
    CHECK_OK(mirab_manual_clock_advance_us(clock, 1, &error));
    decision = acquire(limiter, 5);
    CHECK(decision.allowed);
    mirab_limiter_free(limiter);
    mirab_limiter_free(another);
}

/* Each limit's place tells of the block: none is left unwritten. */
static void standings(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "5/minute; 9/hour; c=concurrency: 3 for 30s", store);
    mirab_standing all[MIRAB_MAX_LIMITS];
    mirab_decision decision;
    memset(all, 0x55, sizeof all);
    CHECK_OK(mirab_limiter_block(limiter, bytes("s"), 1, 7000000, &error));
    CHECK_OK(mirab_limiter_acquire_with_standings(limiter, bytes("s"), 1, 1, &error, &decision, all, MIRAB_MAX_LIMITS));
    is_blocked(limiter, &decision, 7000000);
    for (int i = 0; i < 3; i++) {
        CHECK(all[i].limit == 0 && all[i].used == 0 && all[i].remaining == 0);
        CHECK_NUMBER(all[i].reset_after_us, 7000000);
        CHECK_NUMBER(all[i].next_after_us, 7000000);
    }
    CHECK_NUMBER(all[3].limit, 0x5555555555555555);
    mirab_limiter_free(limiter);
}

static void lifted(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "6/minute", store);
    mirab_decision decision;
    CHECK_OK(mirab_limiter_block(limiter, bytes("k"), 1, 3600000000, &error));
    CHECK_OK(mirab_limiter_block(limiter, bytes("k"), 1, 2000000, &error));
    decision = acquire(limiter, 1);
    is_blocked(limiter, &decision, 2000000);

    CHECK_OK(mirab_limiter_unblock(limiter, bytes("k"), 1, &error));
    CHECK_OK(mirab_limiter_unblock(limiter, bytes("k"), 1, &error));
    CHECK_OK(mirab_limiter_unblock(limiter, bytes("never seen"), 10, &error));
    CHECK(acquire(limiter, 1).allowed);

    CHECK_OK(mirab_limiter_block(limiter, bytes("k"), 1, 2000000, &error));
    CHECK_OK(mirab_limiter_reset(limiter, bytes("k"), 1, &error));
    CHECK_NUMBER(acquire(limiter, 1).remaining, 5);
    mirab_limiter_free(limiter);
}

static void for_how_long(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "6/minute", store);
    const int64_t most = INT64_C(1) << 50;
    CHECK_FAILS(mirab_limiter_block(limiter, bytes("l"), 1, 0, &error), MIRAB_INVALID_ARGUMENT, "block");
    CHECK_FAILS(mirab_limiter_block(limiter, bytes("l"), 1, -2, &error), MIRAB_INVALID_ARGUMENT,
                "for_us must be 0 or more, not -2");
    CHECK_FAILS(mirab_limiter_block(limiter, bytes("l"), 1, most + 1, &error), MIRAB_INVALID_ARGUMENT, "2^50");
    CHECK_FAILS(mirab_limiter_block(limiter, bytes(""), 0, 1, &error), MIRAB_INVALID_ARGUMENT, "empty");
    CHECK_FAILS(mirab_limiter_unblock(limiter, bytes(""), 0, &error), MIRAB_INVALID_ARGUMENT, "empty");
    bool allowed;
    CHECK_OK(mirab_limiter_allow(limiter, bytes("l"), 1, 1, &error, &allowed));
    CHECK(allowed);
    CHECK_OK(mirab_limiter_block(limiter, bytes("l"), 1, most, &error));
    CHECK_OK(mirab_limiter_allow(limiter, bytes("l"), 1, 1, &error, &allowed));
    CHECK(!allowed);
    mirab_limiter_free(limiter);
}

int main(void) {
    const char *stores[] = {"memory:block", test_shm(), test_redis()};
    CHECK_OK(mirab_manual_clock_new(1000000, &error, &clock));
    for (size_t i = 0; i < 3; i++) {
        SCENE(until_its_end(stores[i]));
        SCENE(standings(stores[i]));
        SCENE(lifted(stores[i]));
        SCENE(for_how_long(stores[i]));
    }
    mirab_manual_clock_free(clock);
    return tell(0);
}
