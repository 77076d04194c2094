/* Eight threads on one limiter of capacity 1000: exactly 1000 pass, on memory and on Redis; of three
 * places never more are taken; and twenty who reserve and settle use no more than there is. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "check.h"

enum { THREADS = 8, ASKED = 400, CAPACITY = 1000 };

static void *ask(void *shared) {
    const mirab_limiter *limiter = shared;
    uintptr_t passed = 0;
    for (int i = 0; i < ASKED; i++) {
        mirab_error error;
        mirab_decision decision;
        CHECK_OK(mirab_limiter_acquire(limiter, bytes("crowd"), 5, 1, &error, &decision));
        passed += decision.allowed;
    }
    return (void *)passed;
}

static void crowd(const char *store) {
    pthread_t threads[THREADS];
    mirab_limiter *limiter = limiter_on("1/hour burst 1000", store);
    uintptr_t passed = 0;
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, ask, limiter) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *its;
        CHECK(pthread_join(threads[i], &its) == 0);
        passed += (uintptr_t)its;
    }
    CHECK_NUMBER(passed, CAPACITY);
    mirab_limiter_free(limiter);
}

static atomic_uint flying, most, served;

/* Takes a place, and gives it back, again and again. */
static void *fly(void *shared) {
    const mirab_limiter *limiter = shared;
    for (int i = 0; i < ASKED; i++) {
        mirab_error error;
        mirab_decision decision;
        uint64_t ended;
        CHECK_OK(mirab_limiter_acquire(limiter, bytes("crowd"), 5, 1, &error, &decision));
        if (!decision.allowed) continue;
        const unsigned now = atomic_fetch_add(&flying, 1) + 1;
        unsigned seen = atomic_load(&most);
        while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) continue;
        atomic_fetch_add(&served, 1);
        sched_yield();
        atomic_fetch_sub(&flying, 1);
        CHECK_OK(mirab_limiter_release(limiter, bytes("crowd"), 5, &decision, &error, &ended));
        CHECK_NUMBER(ended, 1);
    }
    return NULL;
}

static void in_flight(const char *store) {
    pthread_t threads[THREADS];
    mirab_error error;
    mirab_limiter *limiter = limiter_on("concurrency: 3 for 1 minute", store);
    mirab_decision decision;
    atomic_store(&most, 0);
    atomic_store(&served, 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, fly, limiter) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(atomic_load(&most) <= 3 && atomic_load(&served) > 3);
    CHECK_OK(mirab_limiter_peek(limiter, bytes("crowd"), 5, 3, &error, &decision));
    CHECK(decision.allowed);
    mirab_limiter_free(limiter);
}

enum { SETTLING = 20, TURNS = 60, RESERVED = 10 };

/* Reserves ten, uses none to ten of them, and settles at that: or gives all back. */
static void *settle(void *shared) {
    const mirab_limiter *limiter = shared;
    uintptr_t used = 0;
    for (int i = 0; i < TURNS; i++) {
        mirab_error error;
        mirab_decision decision;
        uint64_t units;
        CHECK_OK(mirab_limiter_acquire(limiter, bytes("settle"), 6, RESERVED, &error, &decision));
        if (!decision.allowed) continue;
        sched_yield();
        const int actual = i % (RESERVED + 1);
        if (i % 2 == 0) {
            CHECK_OK(mirab_limiter_commit(limiter, bytes("settle"), 6, &decision, actual, &error));
            used += (uintptr_t)actual;
        } else {
            CHECK_OK(mirab_limiter_refund(limiter, bytes("settle"), 6, &decision, &error, &units));
            CHECK_NUMBER(units, RESERVED);
        }
    }
    return (void *)used;
}

static void settling(const char *limits, const char *store) {
    pthread_t threads[SETTLING];
    mirab_error error;
    mirab_limiter *limiter = limiter_on(limits, store);
    mirab_decision decision;
    mirab_standing standings[MIRAB_MAX_LIMITS];
    uintptr_t used = 0;
    for (int i = 0; i < SETTLING; i++) CHECK(pthread_create(&threads[i], NULL, settle, limiter) == 0);
    for (int i = 0; i < SETTLING; i++) {
        void *its;
        CHECK(pthread_join(threads[i], &its) == 0);
        used += (uintptr_t)its;
    }
    CHECK_OK(mirab_limiter_peek_with_standings(limiter, bytes("settle"), 6, 1, &error, &decision, standings,
                                               MIRAB_MAX_LIMITS));
    CHECK(used > 0 && used <= CAPACITY);
    CHECK_NUMBER(standings[0].used, used);
    mirab_limiter_free(limiter);
}

int main(void) {
    SCENE(crowd("memory:"));
    SCENE(crowd(test_shm()));
    SCENE(crowd(test_redis()));
    SCENE(in_flight("memory:"));
    SCENE(in_flight(test_shm()));
    SCENE(in_flight(test_redis()));
    const char *limits[] = {"1000/year", "fixed_window: 1000/30 years", "sliding_log: 1000/year; 2000/year"};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        SCENE(settling(limits[i], "memory:"));
        SCENE(settling(limits[i], test_shm()));
        SCENE(settling(limits[i], test_redis()));
    }
    return tell(0);
}
