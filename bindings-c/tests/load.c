/* Eight threads and a thousand keys: exactly what is permitted passes, and far fewer commands reach the server than
 * decisions are made, since those who wait share a round trip. And a server that stops under such a load. */
#include <pthread.h>
#include <stdatomic.h>

#include "server.h"

enum { THREADS = 8, KEYS = 1000, ASKED = 25000, CAPACITY = 150 };

struct worker {
    const mirab_limiter *limiter;
    unsigned number;
    uint32_t passed[KEYS];
};

/* Each thread goes through the keys in an order of its own. */
static void *ask(void *of) {
    struct worker *worker = of;
    unsigned place = worker->number * KEYS / THREADS;
    char key[16];
    for (int i = 0; i < ASKED; i++) {
        mirab_error error;
        bool allowed;
        place = (place + 2 * worker->number + 1) % KEYS;
        const int length = snprintf(key, sizeof key, "key %u", place);
        CHECK_OK(mirab_limiter_allow(worker->limiter, bytes(key), (size_t)length, 1, &error, &allowed));
        worker->passed[place] += allowed;
    }
    return NULL;
}

static void thousand_keys(void) {
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    char store[128];
    server_uri(store, sizeof store, "?timeout_ms=5000&prefix=thousand");
    mirab_limiter *limiter = limiter_on("150/30 years", store);
    const uint64_t before = server_calls();
    const int64_t begun = real_us();
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.limiter = limiter, .number = i};
        CHECK(pthread_create(&threads[i], NULL, ask, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    const int64_t took = real_us() - begun;
    const uint64_t calls = server_calls() - before;
    for (int key = 0; key < KEYS; key++) {
        uint32_t passed = 0;
        for (int i = 0; i < THREADS; i++) passed += workers[i].passed[key];
        CHECK_NUMBER(passed, CAPACITY);
    }
    printf("load: %d decisions in %" PRId64 " ms, %d of them admitted; %" PRIu64 " commands reached the server\n",
           THREADS * ASKED, took / 1000, KEYS * CAPACITY, calls);
    /* Refusals are remembered, but each that was admitted has been asked for. */
    CHECK(calls < KEYS * CAPACITY / 2);
    mirab_limiter_free(limiter);
}

/* One who asks about new keys, so that none is remembered, and leaves the processor to others in between. */
struct asker {
    const mirab_limiter *limiter;
    unsigned number;
    atomic_uint by_the_server, degraded;
    int64_t longest_us;
};

static atomic_bool is_measured, is_over;
static const struct timespec pause_between = {.tv_nsec = 500000};

static void *keep_asking(void *of) {
    struct asker *asker = of;
    char key[24];
    for (unsigned asked = 0; !atomic_load(&is_over); asked++) {
        mirab_error error;
        mirab_decision decision;
        const int length = snprintf(key, sizeof key, "%u %u", asker->number, asked);
        const int64_t begun = real_us();
        CHECK_OK(mirab_limiter_acquire(asker->limiter, bytes(key), (size_t)length, 1, &error, &decision));
        const int64_t took = real_us() - begun;
        CHECK(decision.allowed);
        if (atomic_load(&is_measured) && took > asker->longest_us) asker->longest_us = took;
        atomic_fetch_add(decision.degraded ? &asker->degraded : &asker->by_the_server, 1);
        nanosleep(&pause_between, NULL);
    }
    return NULL;
}

static unsigned count_of(struct asker *asker, bool degraded) {
    return atomic_load(degraded ? &asker->degraded : &asker->by_the_server);
}

/* Until each of them has so many decisions more, by the server or beside it. */
static void until_each(struct asker *askers, bool degraded, unsigned more) {
    const int64_t begun = real_us();
    unsigned before[THREADS];
    for (int i = 0; i < THREADS; i++) before[i] = count_of(&askers[i], degraded);
    for (int i = 0; i < THREADS; i++) {
        while (count_of(&askers[i], degraded) - before[i] < more) {
            if (real_us() - begun > 60000000) FAIL("thread %d gets no decision %s", i, degraded ? "here" : "there");
            nanosleep(&pause_between, NULL);
        }
    }
}

static void stopped_under_load(void) {
    static struct asker askers[THREADS];
    pthread_t threads[THREADS];
    mirab_error error;
    mirab_limiter *limiter;
    mirab_stats stats;
    char store[128];
    int64_t longest_us = 0;
    server_uri(store, sizeof store, "?prefix=stopped");
    CHECK_OK(mirab_limiter_new("5/hour", store, NULL, &error, &limiter));
    for (unsigned i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){.limiter = limiter, .number = i};
        CHECK(pthread_create(&threads[i], NULL, keep_asking, &askers[i]) == 0);
    }
    until_each(askers, false, 100);
    atomic_store(&is_measured, true);
    for (int stop = 0; stop < 3; stop++) {
        server_stop();
        until_each(askers, true, 500);
        server_go_on();
        until_each(askers, false, 100);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        if (askers[i].longest_us > longest_us) longest_us = askers[i].longest_us;
    }
    CHECK_OK(mirab_limiter_stats(limiter, &error, &stats));
    CHECK_NUMBER(stats.errors, 0);
    printf("load: %" PRIu64 " decisions of 8 threads, %" PRIu64 " of them beside a server that was stopped 3 times; the"
           " longest call took %" PRId64 " us, the deadline is %d\n",
           stats.allowed, stats.degraded, longest_us, DEADLINE_US);
    CHECK(longest_us <= SLOWER * (DEADLINE_US + GRACE_US));
    mirab_limiter_free(limiter);
}

int main(void) {
    SCENE(thousand_keys());
    SCENE(stopped_under_load());
    return tell(0);
}
