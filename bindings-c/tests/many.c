/* Several keys in one step, on memory and on Redis. */
#include "check.h"

enum { ROOM = 300 };

static mirab_error error;
static mirab_manual_clock *clock;
static mirab_decision decisions[ROOM];

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static uint64_t used(const mirab_limiter *limiter, const char *key) {
    mirab_decision decision;
    CHECK_OK(mirab_limiter_peek(limiter, bytes(key), strlen(key), 1, &error, &decision));
    return decision.used;
}

/* Each for itself, in their order; the same key twice counts twice. */
static void each_for_itself(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "5/hour; sliding_log: 4/minute", store);
    const uint8_t *keys[] = {bytes("a"), bytes("b"), bytes("a"), bytes("a"), bytes("c\0d"), bytes("b")};
    const size_t lens[] = {1, 1, 1, 1, 3, 1};
    const int64_t costs[] = {3, 5, 1, 1, 2, 0};
    const bool allowed[] = {true, false, true, false, true, true};
    const uint64_t remaining[] = {1, 4, 0, 0, 2, 4};
    memset(decisions, 0x55, sizeof decisions);
    CHECK_OK(mirab_limiter_acquire_many(limiter, keys, lens, costs, COUNT(keys), &error, decisions));
    for (size_t i = 0; i < COUNT(keys); i++) {
        CHECK(decisions[i].allowed == allowed[i]);
        CHECK_NUMBER(decisions[i].limit_index, 1);
        CHECK_NUMBER(decisions[i].remaining, remaining[i]);
    }
    CHECK(decisions[1].never);
    CHECK_NUMBER(decisions[3].retry_after_us, 60000000);
    CHECK_NUMBER(decisions[COUNT(keys)].limit, 0x5555555555555555);

    /* Each can be given back for itself. */
    uint64_t units;
    CHECK_OK(mirab_limiter_refund(limiter, keys[0], lens[0], &decisions[0], &error, &units));
    CHECK_NUMBER(units, 3);
    CHECK_OK(mirab_limiter_refund(limiter, keys[3], lens[3], &decisions[3], &error, &units));
    CHECK_NUMBER(units, 0);
    CHECK_NUMBER(used(limiter, "a"), 1);

    /* Without costs each is 1. */
    CHECK_OK(mirab_limiter_acquire_many(limiter, keys, lens, NULL, 4, &error, decisions));
    CHECK_NUMBER(decisions[0].used, 2);
    CHECK_NUMBER(decisions[1].used, 1);
    CHECK_NUMBER(decisions[3].used, 4);
    mirab_limiter_free(limiter);
}

/* One that is blocked is refused, the others are not. */
static void a_blocked_one(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "7/hour", store);
    const uint8_t *keys[] = {bytes("x"), bytes("y"), bytes("z")};
    const size_t lens[] = {1, 1, 1};
    CHECK_OK(mirab_limiter_block(limiter, bytes("y"), 1, 3000000, &error));
    CHECK_OK(mirab_limiter_acquire_many(limiter, keys, lens, NULL, 3, &error, decisions));
    CHECK(decisions[0].allowed && !decisions[1].allowed && decisions[2].allowed);
    CHECK_NUMBER(decisions[1].limit_index, MIRAB_LIMIT_BLOCK);
    CHECK_NUMBER(decisions[1].retry_after_us, 3000000);
    mirab_limiter_free(limiter);
}

/* A bad item: nothing is done, and the message names it. */
static void a_bad_one(const char *store) {
    static uint8_t long_key[65537];
    mirab_limiter *limiter = limiter_by(clock, "9/hour", store);
    const uint8_t *keys[] = {bytes("good"), bytes("also"), bytes("bad")};
    size_t lens[] = {4, 4, 3};
    int64_t costs[] = {1, 2, 3};
    memset(decisions, 0x55, sizeof decisions);
#define BAD(part)                                                                                            \
    CHECK_FAILS(mirab_limiter_acquire_many(limiter, keys, lens, costs, 3, &error, decisions),                \
                MIRAB_INVALID_ARGUMENT, part)
    costs[2] = -4;
    BAD("item 2: cost must be 0 or more, not -4");
    costs[2] = (INT64_C(1) << 53) + 1;
    BAD("item 2: ");
    costs[2] = 3;
    lens[1] = 0;
    BAD("item 1: ");
    lens[1] = (size_t)-1;
    BAD("item 1: the length of key");
    keys[1] = long_key;
    lens[1] = sizeof long_key;
    BAD("item 1: ");
    CHECK_NUMBER(used(limiter, "good"), 0);
    CHECK_NUMBER(used(limiter, "bad"), 0);
    CHECK_NUMBER(decisions[0].limit, 0x5555555555555555);
    CHECK_FAILS(mirab_limiter_acquire_many(limiter, keys, lens, costs, (size_t)-1, &error, decisions),
                MIRAB_INVALID_ARGUMENT, "length of keys");
    mirab_limiter_free(limiter);
}

/* None, where there is nothing to point to; and more than go into one script call. */
static void how_many(const char *store) {
    static char names[ROOM][8];
    const uint8_t *keys[ROOM];
    size_t lens[ROOM];
    mirab_limiter *limiter = limiter_by(clock, "3/hour", store);
    CHECK_OK(mirab_limiter_acquire_many(limiter, NULL, NULL, NULL, 0, &error, NULL));
    for (int i = 0; i < ROOM; i++) {
        lens[i] = (size_t)snprintf(names[i], sizeof names[i], "n%d", i % 100);
        keys[i] = bytes(names[i]);
    }
    CHECK_OK(mirab_limiter_acquire_many(limiter, keys, lens, NULL, ROOM, &error, decisions));
    for (uint64_t i = 0; i < ROOM; i++) {
        CHECK(decisions[i].allowed);
        CHECK_NUMBER(decisions[i].remaining, 2 - i / 100);
    }
    mirab_limiter_free(limiter);
}

int main(void) {
    const char *stores[] = {"memory:many", test_shm(), test_redis()};
    CHECK_OK(mirab_manual_clock_new(1000000, &error, &clock));
    for (size_t i = 0; i < 3; i++) {
        SCENE(each_for_itself(stores[i]));
        SCENE(a_blocked_one(stores[i]));
        SCENE(a_bad_one(stores[i]));
        SCENE(how_many(stores[i]));
    }
    mirab_manual_clock_free(clock);
    return tell(0);
}
