/* Waiting: until the promised instant, never longer than asked, and no time at all by a manual clock. */
#include <pthread.h>
#include <time.h>

#include "check.h"

static mirab_error error;
static mirab_manual_clock *manual;

static int64_t real_us(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void sleep_ms(long ms) {
    const struct timespec time = {.tv_nsec = ms * 1000000};
    CHECK(nanosleep(&time, NULL) == 0);
}

static uint64_t now_us(void) {
    uint64_t us;
    CHECK_OK(mirab_manual_clock_now_us(manual, &error, &us));
    return us;
}

static mirab_decision wait_for(const mirab_limiter *limiter, int64_t cost, int64_t timeout_us) {
    mirab_decision decision;
    CHECK_OK(mirab_limiter_wait(limiter, bytes("k"), 1, cost, timeout_us, &error, &decision));
    return decision;
}

static void without_real_time(const char *store) {
    const int64_t begun = real_us();
    mirab_limiter *limiter = limiter_by(manual, "1/hour; leaky_bucket: 1/30 minutes queue 5", store);
    const uint64_t start = now_us();
    for (uint64_t turn = 0; turn < 24; turn++) {
        CHECK(wait_for(limiter, 1, MIRAB_FOREVER).allowed);
        CHECK_NUMBER(now_us() - start, turn * 3600000000);
    }
    CHECK(real_us() - begun < 20000000);
    mirab_limiter_free(limiter);
}

static void no_longer_than_asked(const char *store) {
    mirab_limiter *limiter = limiter_by(manual, "5/minute", store);
    mirab_decision decision = {.limit = 77};
    const uint64_t start = now_us();
    CHECK(wait_for(limiter, 6, MIRAB_FOREVER).never);
    CHECK(wait_for(limiter, 5, 1).allowed);
    decision = wait_for(limiter, 1, 11999999);
    CHECK(!decision.allowed);
    CHECK_NUMBER(decision.retry_after_us, 12000000);
    CHECK(!wait_for(limiter, 1, 1).allowed);
    CHECK_NUMBER(now_us() - start, 0);
    CHECK(wait_for(limiter, 1, 12000000).allowed);
    CHECK_NUMBER(now_us() - start, 12000000);

    /* A block is waited for, too. */
    CHECK_OK(mirab_limiter_block(limiter, bytes("k"), 1, 9000000, &error));
    CHECK_NUMBER(wait_for(limiter, 0, 8999999).limit_index, MIRAB_LIMIT_BLOCK);
    decision = wait_for(limiter, 0, 9000000);
    CHECK(decision.allowed);
    CHECK_NUMBER(now_us() - start, 21000000);

    /* No time at all asks once. */
    CHECK(!wait_for(limiter, 1, 0).allowed);
    CHECK_NUMBER(now_us() - start, 21000000);

    CHECK_FAILS(mirab_limiter_wait(limiter, bytes("k"), 1, 1, -1, &error, &decision), MIRAB_INVALID_ARGUMENT,
                "timeout_us must be 0 or more, not -1");
    CHECK_FAILS(mirab_limiter_wait(limiter, bytes("k"), 1, -1, 1, &error, &decision), MIRAB_INVALID_ARGUMENT,
                "cost must be 0 or more, not -1");
    CHECK_FAILS(mirab_limiter_wait(limiter, bytes(""), 0, 1, 1, &error, &decision), MIRAB_INVALID_ARGUMENT,
                "empty");

    /* What was waited for can be given back. */
    uint64_t units;
    decision = wait_for(limiter, 3, MIRAB_FOREVER);
    CHECK_OK(mirab_limiter_refund(limiter, bytes("k"), 1, &decision, &error, &units));
    CHECK_NUMBER(units, 3);
    mirab_limiter_free(limiter);
}

static void until_its_turn(const char *store) {
    mirab_limiter *limiter = limiter_by(manual, "leaky_bucket: 1/second queue 5", store);
    mirab_decision decision;
    const uint64_t start = now_us();
    for (uint64_t turn = 0; turn < 4; turn++) {
        decision = wait_for(limiter, 1, MIRAB_FOREVER);
        CHECK(decision.allowed);
        CHECK_NUMBER(decision.delay_us, turn == 0 ? 0 : 1000000);
        CHECK_NUMBER(now_us() - start, turn * 1000000);
    }
    /* A turn beyond the timeout: the caller is told how long to hold it. */
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, 2, &error, &decision));
    decision = wait_for(limiter, 1, 500000);
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.delay_us, 3000000);
    CHECK_NUMBER(now_us() - start, 3000000);
    mirab_limiter_free(limiter);
}

/* By real time: it sleeps, and a timeout ends it. */
static void asleep(const char *store) {
    mirab_limiter *limiter = limiter_on("20/second burst 1; concurrency: 2 for 1 hour", store);
    int64_t begun = real_us();
    CHECK(wait_for(limiter, 1, MIRAB_FOREVER).allowed);
    CHECK(wait_for(limiter, 1, 30000000).allowed);
    CHECK(real_us() - begun >= 49000 && real_us() - begun < 5000000);
    begun = real_us();
    CHECK(!wait_for(limiter, 1, 60000).allowed);
    CHECK(real_us() - begun >= 49000 && real_us() - begun < 5000000);
    mirab_limiter_free(limiter);
}

struct waiter {
    const mirab_limiter *limiter;
    mirab_result result;
    bool allowed;
    int64_t ended_us;
};

static void *wait_on(void *of) {
    struct waiter *waiter = of;
    mirab_decision decision = {.allowed = false};
    waiter->result = mirab_limiter_wait(waiter->limiter, bytes("k"), 1, 1, MIRAB_FOREVER, NULL, &decision);
    waiter->allowed = decision.allowed;
    waiter->ended_us = real_us();
    return NULL;
}

static void released(const char *store) {
    pthread_t thread;
    mirab_limiter *limiter = limiter_on("concurrency: 1 for 1 hour", store);
    struct waiter waiter = {.limiter = limiter};
    mirab_decision held = wait_for(limiter, 1, 1);
    CHECK(held.allowed);
    CHECK(pthread_create(&thread, NULL, wait_on, &waiter) == 0);
    sleep_ms(50);
    CHECK_OK(mirab_limiter_release(limiter, bytes("k"), 1, &held, &error, NULL));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(waiter.result == MIRAB_OK && waiter.allowed);
    mirab_limiter_free(limiter);
}

/* Those who wait inside are woken, and after that it may be freed. */
static void closed(const char *store) {
    enum { WAITERS = 8 };
    pthread_t threads[WAITERS];
    struct waiter waiters[WAITERS];
    mirab_limiter *limiter = limiter_on("1/year", store);
    CHECK(wait_for(limiter, 1, 1).allowed);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.limiter = limiter};
        CHECK(pthread_create(&threads[i], NULL, wait_on, &waiters[i]) == 0);
    }
    sleep_ms(100);
    CHECK_OK(mirab_limiter_close(limiter, &error));
    for (int i = 0; i < WAITERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(waiters[i].result == MIRAB_CLOSED && !waiters[i].allowed);
    }
    mirab_limiter_free(limiter);
}

static int later(const void *left, const void *right) {
    const int64_t one = ((const struct waiter *)left)->ended_us, other = ((const struct waiter *)right)->ended_us;
    return (one > other) - (one < other);
}

/* One at once, then one in 20 ms: nobody is admitted before his instant, and nobody asks without end. */
static void crowd(const char *store) {
    enum { WAITERS = 32 };
    pthread_t threads[WAITERS];
    struct waiter waiters[WAITERS];
    mirab_stats stats;
    mirab_limiter *limiter = limiter_on("50/second burst 1", store);
    const int64_t begun = real_us();
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = (struct waiter){.limiter = limiter};
        CHECK(pthread_create(&threads[i], NULL, wait_on, &waiters[i]) == 0);
    }
    for (int i = 0; i < WAITERS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    qsort(waiters, WAITERS, sizeof waiters[0], later);
    for (int i = 0; i < WAITERS; i++) {
        CHECK(waiters[i].result == MIRAB_OK && waiters[i].allowed);
        CHECK(waiters[i].ended_us - begun + 2000 >= i * 20000);
    }
    CHECK_OK(mirab_limiter_stats(limiter, &error, &stats));
    CHECK_NUMBER(stats.allowed, WAITERS);
    CHECK(stats.refused <= WAITERS * (WAITERS + 1));
    mirab_limiter_free(limiter);
}

int main(void) {
    const char *stores[] = {"memory:wait", test_shm(), test_redis()};
    CHECK_OK(mirab_manual_clock_new(0, &error, &manual));
    for (size_t i = 0; i < 3; i++) {
        SCENE(without_real_time(stores[i]));
        SCENE(no_longer_than_asked(stores[i]));
        SCENE(until_its_turn(stores[i]));
        SCENE(asleep(stores[i]));
        SCENE(released(stores[i]));
        SCENE(closed(stores[i]));
        SCENE(crowd(stores[i]));
    }
    mirab_manual_clock_free(manual);
    return tell(0);
}
