/* Eight threads on one limiter of capacity 1000: exactly 1000 pass, on memory and on Redis. */
#include <pthread.h>

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
    mirab_error error;
    mirab_limiter *limiter;
    uintptr_t passed = 0;
    CHECK_OK(mirab_limiter_new("1/hour burst 1000", store, NULL, &error, &limiter));
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, ask, limiter) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *its;
        CHECK(pthread_join(threads[i], &its) == 0);
        passed += (uintptr_t)its;
    }
    CHECK_NUMBER(passed, CAPACITY);
    mirab_limiter_free(limiter);
}

int main(void) {
    SCENE(crowd("memory:"));
    SCENE(crowd(test_redis()));
    return tell(0);
}
