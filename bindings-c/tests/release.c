/* Places in flight: given back once, or ended by time, on memory and on Redis. */
#include "check.h"

static mirab_error error;
static mirab_manual_clock *clock;

static mirab_decision acquire(const mirab_limiter *limiter, int64_t cost) {
    mirab_decision decision;
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, cost, &error, &decision));
    return decision;
}

static uint64_t release(const mirab_limiter *limiter, const char *key, mirab_decision *decision) {
    uint64_t ended = 99;
    CHECK_OK(mirab_limiter_release(limiter, bytes(key), strlen(key), decision, &error, &ended));
    return ended;
}

static void not_its_own(const mirab_limiter *limiter, const char *key, mirab_decision *decision) {
    const mirab_decision before = *decision;
    CHECK_FAILS(mirab_limiter_release(limiter, bytes(key), strlen(key), decision, &error, NULL),
                MIRAB_INVALID_ARGUMENT, "one that this limiter gave for this key");
    CHECK(memcmp(&before, decision, sizeof before) == 0);
}

static uint64_t left(const mirab_limiter *limiter) {
    mirab_decision decision;
    CHECK_OK(mirab_limiter_peek(limiter, bytes("k"), 1, 1, &error, &decision));
    CHECK_NUMBER(release(limiter, "k", &decision), 0);
    return decision.remaining;
}

static void once(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "concurrency: 3 for 30s", store);
    mirab_decision first = acquire(limiter, 1), second = acquire(limiter, 2), refused = acquire(limiter, 1);
    CHECK(first.allowed && second.allowed && !refused.allowed);
    CHECK_NUMBER(refused.retry_after_us, 30000000);

    mirab_decision copy = first;
    not_its_own(limiter, "other key", &first);
    CHECK_NUMBER(release(limiter, "k", &first), 1);
    CHECK_NUMBER(release(limiter, "k", &first), 0);
    CHECK_NUMBER(release(limiter, "k", &copy), 0);
    CHECK_NUMBER(release(limiter, "k", &refused), 0);
    CHECK_NUMBER(left(limiter), 1);

    mirab_decision nothing = acquire(limiter, 0);
    CHECK_NUMBER(release(limiter, "k", &nothing), 0);

    /* Nobody has to ask how many there were. */
    CHECK_OK(mirab_limiter_release(limiter, bytes("k"), 1, &second, &error, NULL));
    CHECK_NUMBER(left(limiter), 3);
    not_its_own(limiter, "", &second);
    mirab_limiter_free(limiter);
}

/* Only what was taken is marked: the rest of the decision stays, and bytes around it too. */
static void marked(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "1/hour burst 9; concurrency: 8 for 30s", store);
    mirab_decision decision = acquire(limiter, 2);
    CHECK_NUMBER(decision.remaining, 6);
    const mirab_decision before = decision;
    CHECK(decision._receipt[3] != 0 || decision._receipt[4] != 0);
    CHECK_NUMBER(release(limiter, "k", &decision), 1);
    CHECK(decision._receipt[3] == 0 && decision._receipt[4] == 0);
    CHECK(memcmp(&before, &decision, offsetof(mirab_decision, _receipt) + 3 * sizeof(uint64_t)) == 0);
    CHECK(memcmp(before._receipt + 5, decision._receipt + 5, sizeof before - 12 * sizeof(uint64_t)) == 0);

    /* The place is free again, the rate stays charged. */
    CHECK_NUMBER(left(limiter), 7);
    CHECK_NUMBER(acquire(limiter, 8).retry_after_us, 3600000000);
    mirab_limiter_free(limiter);
}

static void expired(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "concurrency: 1 for 30s", store);
    mirab_decision decision = acquire(limiter, 1);
    CHECK_OK(mirab_manual_clock_advance_us(clock, 29999999, &error));
    CHECK(!acquire(limiter, 1).allowed);
    CHECK_OK(mirab_manual_clock_advance_us(clock, 1, &error));
    CHECK_NUMBER(release(limiter, "k", &decision), 0);
    mirab_decision next = acquire(limiter, 1);
    CHECK(next.allowed);
    CHECK_NUMBER(release(limiter, "k", &decision), 0);
    CHECK_NUMBER(release(limiter, "k", &next), 1);
    mirab_limiter_free(limiter);
}

static void another_limiter(const char *store) {
    static const char *others[] = {"5/minute", "5/minute; 9/hour", "concurrency: 1 for 31s", "deny"};
    mirab_limiter *limiter = limiter_by(clock, "concurrency: 1 for 30s", store);
    mirab_decision decision = acquire(limiter, 1);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        mirab_limiter *other = limiter_by(clock, others[i], store);
        not_its_own(other, "k", &decision);
        mirab_decision its = acquire(other, 1);
        if (its.allowed)
            not_its_own(limiter, "k", &its);
        else
            CHECK_NUMBER(release(limiter, "k", &its), 0);
        mirab_limiter_free(other);
    }
    /* One of the same limits on the same store is as good; on another store there is no such lease. */
    mirab_limiter *twin = limiter_by(clock, "concurrency: 1 for 30s", store);
    mirab_limiter *elsewhere = limiter_by(clock, "concurrency: 1 for 30s", "memory:");
    CHECK_NUMBER(release(elsewhere, "k", &decision), 0);
    mirab_limiter_free(elsewhere);
    CHECK_NUMBER(left(limiter), 0);
    CHECK_NUMBER(release(twin, "k", &decision), 1);
    CHECK_NUMBER(left(limiter), 1);
    mirab_limiter_free(twin);
    mirab_limiter_free(limiter);
}

/* A decision that nobody filled is no lease, whatever its bytes say. */
static void garbage(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "concurrency: 1 for 30s", store);
    for (int byte = 0; byte < 256; byte++) {
        mirab_decision decision;
        memset(&decision, byte, sizeof decision);
        if (byte == 0)
            CHECK_NUMBER(release(limiter, "k", &decision), 0);
        else
            not_its_own(limiter, "k", &decision);
    }
    CHECK_NUMBER(left(limiter), 1);
    mirab_limiter_free(limiter);
}

/* The store is away: an error, and the decision can be released when it is back. */
static void store_away(void) {
    mirab_limiter *here = limiter_by(clock, "concurrency: 1 for 30s", "memory:");
    mirab_limiter *away = limiter_by(clock, "concurrency: 1 for 30s", "redis://127.0.0.1:1?timeout_ms=500");
    mirab_decision decision = acquire(here, 1);
    uint64_t ended = 99;
    CHECK_FAILS(mirab_limiter_release(away, bytes("k"), 1, &decision, &error, &ended), MIRAB_STORE_UNAVAILABLE,
                "127.0.0.1:1");
    CHECK_NUMBER(ended, 99);
    CHECK_NUMBER(release(here, "k", &decision), 1);
    mirab_limiter_free(here);
    mirab_limiter_free(away);
}

static uint32_t broken_clock(void *broken, uint64_t *now_us) {
    *now_us = 1000000;
    return *(bool *)broken;
}

/* The clock is read only for a lease. */
static void without_time(void) {
    bool broken = false;
    mirab_options *options;
    mirab_limiter *limiter;
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_OK(mirab_options_set_clock_callback(options, broken_clock, &broken, &error));
    CHECK_OK(mirab_limiter_new("concurrency: 1 for 30s", "memory:", options, &error, &limiter));
    mirab_options_free(options);
    mirab_decision decision = acquire(limiter, 1), refused = acquire(limiter, 1);
    broken = true;
    CHECK_NUMBER(release(limiter, "k", &refused), 0);
    CHECK_FAILS(mirab_limiter_release(limiter, bytes("k"), 1, &decision, &error, NULL), MIRAB_INVALID_ARGUMENT,
                "returned 1");
    broken = false;
    CHECK_NUMBER(release(limiter, "k", &decision), 1);
    broken = true;
    CHECK_NUMBER(release(limiter, "k", &decision), 0);
    mirab_limiter_free(limiter);
}

int main(void) {
    const char *stores[] = {"memory:release", test_shm(), test_redis()};
    CHECK_OK(mirab_manual_clock_new(1000000, &error, &clock));
    for (size_t i = 0; i < 3; i++) {
        SCENE(once(stores[i]));
        SCENE(marked(stores[i]));
        SCENE(expired(stores[i]));
        SCENE(another_limiter(stores[i]));
        SCENE(garbage(stores[i]));
    }
    SCENE(store_away());
    SCENE(without_time());
    mirab_manual_clock_free(clock);
    return tell(0);
}
