/* A Redis that is stopped where it stands, as its process with SIGSTOP: every choice of what happens then, by which no
 * call takes long, and the way back. */
#include "server.h"

static mirab_error error;
static char store[128];
static int64_t longest_us;

/* Remembers how long the call took, where it was the longest. */
#define TIMED(call)                                                                                          \
    do {                                                                                                     \
        const int64_t begun_ = real_us();                                                                    \
        call;                                                                                                \
        const int64_t took_ = real_us() - begun_;                                                            \
        if (took_ > longest_us) longest_us = took_;                                                          \
    } while (0)

static mirab_decision acquire(const mirab_limiter *limiter, const char *key, int64_t cost) {
    mirab_decision decision;
    TIMED(CHECK_OK(mirab_limiter_acquire(limiter, bytes(key), strlen(key), cost, &error, &decision)));
    return decision;
}

static mirab_decision degraded(const mirab_limiter *limiter, const char *key, int64_t cost) {
    const mirab_decision decision = acquire(limiter, key, cost);
    CHECK(decision.degraded);
    return decision;
}

/* A decision about a new key, by the server: on a busy machine that may be late once or twice. Between two tries the
 * library's own thread, which looks for the server, has its turn: valgrind runs one thread at a time. */
static mirab_decision by_the_server(const mirab_limiter *limiter, char key[16], int64_t cost) {
    static int keys;
    const int64_t begun = real_us();
    for (;;) {
        snprintf(key, 16, "key %d", keys++);
        const mirab_decision decision = acquire(limiter, key, cost);
        if (!decision.degraded) return decision;
        CHECK(nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL) == 0);
        if (real_us() - begun > 30000000) FAIL("the server doesn't decide");
    }
}

static mirab_health health_of(const mirab_limiter *limiter) {
    mirab_health health;
    TIMED(CHECK_OK(mirab_limiter_health(limiter, &error, &health)));
    return health;
}

/* The oldest line of news, in `line`; false when there is none. */
static bool next_line(const mirab_limiter *limiter, char line[MIRAB_NEWS_SIZE]) {
    bool told;
    CHECK_OK(mirab_limiter_take_news(limiter, &error, &told, line, MIRAB_NEWS_SIZE));
    return told;
}

/* The server had decided about 2 of 5: there are 3 left here, and what is given back is nothing. */
static void goes_on_here(const mirab_limiter *limiter, const char *key, mirab_decision *taken) {
    uint64_t units = 7;
    mirab_decision decision;
    for (uint64_t left = 3; left-- > 0;) {
        decision = degraded(limiter, key, 1);
        CHECK(decision.allowed);
        CHECK_NUMBER(decision.limit, 5);
        CHECK_NUMBER(decision.remaining, left);
    }
    decision = degraded(limiter, key, 1);
    CHECK(!decision.allowed && !decision.never && decision.retry_after_us <= 720000000);
    CHECK(degraded(limiter, key, 6).never);
    TIMED(CHECK_OK(mirab_limiter_refund(limiter, bytes(key), strlen(key), taken, &error, &units)));
    CHECK_NUMBER(units, 0);
    TIMED(CHECK_OK(mirab_limiter_commit(limiter, bytes(key), strlen(key), taken, 1, &error)));
}

/* All the other ways to ask are decided here, too. */
static void asked_in_every_way(const mirab_limiter *limiter) {
    const uint8_t *keys[] = {bytes("many"), bytes("many"), bytes("others")};
    const size_t lens[] = {4, 4, 6};
    const int64_t costs[] = {3, 3, 5};
    mirab_decision decisions[3], decision;
    mirab_standing standings[1];
    bool allowed = false;
    TIMED(CHECK_OK(mirab_limiter_acquire_many(limiter, keys, lens, costs, 3, &error, decisions)));
    CHECK(decisions[0].degraded && decisions[1].degraded && decisions[2].degraded);
    CHECK(decisions[0].allowed && !decisions[1].allowed && decisions[2].allowed);
    TIMED(CHECK_OK(mirab_limiter_allow(limiter, bytes("many"), 4, 1, &error, &allowed)));
    CHECK(allowed);
    TIMED(CHECK_OK(mirab_limiter_peek(limiter, bytes("many"), 4, 1, &error, &decision)));
    CHECK(decision.degraded && decision.allowed);
    CHECK_NUMBER(decision.remaining, 1);
    TIMED(CHECK_OK(mirab_limiter_acquire_with_standings(limiter, bytes("many"), 4, 1, &error, &decision, standings, 1)));
    CHECK(decision.degraded && decision.allowed);
    CHECK_NUMBER(standings[0].remaining, 0);
    CHECK_OK(mirab_limiter_wait(limiter, bytes("many"), 4, 1, 1, &error, &decision));
    CHECK(decision.degraded && !decision.allowed);
}

/* Who asks for the store itself is told that it is away. */
static void of_the_store_itself(const mirab_limiter *limiter, mirab_decision *taken) {
    mirab_decision decision;
    TIMED(CHECK_FAILS(mirab_limiter_reset(limiter, bytes("k"), 1, &error), MIRAB_STORE_TIMEOUT, "deadline"));
    TIMED(CHECK_FAILS(mirab_limiter_block(limiter, bytes("k"), 1, 1, &error), MIRAB_STORE_TIMEOUT, "deadline"));
    TIMED(CHECK_FAILS(mirab_limiter_unblock(limiter, bytes("k"), 1, &error), MIRAB_STORE_TIMEOUT, "deadline"));
    if (taken == NULL) return;
    TIMED(CHECK_FAILS(mirab_limiter_acquire(limiter, bytes("k"), 1, 1, &error, &decision), MIRAB_STORE_TIMEOUT, ""));
    TIMED(CHECK_FAILS(mirab_limiter_refund(limiter, bytes("k"), 1, taken, &error, NULL), MIRAB_STORE_TIMEOUT, ""));
}

/* Asks for so long without a pause. */
static uint64_t asked_for(const mirab_limiter *limiter, int64_t us) {
    const int64_t begun = real_us();
    uint64_t asked = 0;
    for (; real_us() - begun < us; asked++) degraded(limiter, "patient", 1);
    return asked;
}

/* A server that was asked and didn't answer may have done it: never twice. */
static void in_doubt(void) {
    uint64_t units = 7;
    mirab_decision taken;
    mirab_limiter *strict = limiter_on("5/hour", store);
    while (mirab_limiter_acquire(strict, bytes("doubt"), 5, 1, &error, &taken) != MIRAB_OK || !taken.allowed)
        CHECK_OK(mirab_limiter_reset(strict, bytes("doubt"), 5, &error));
    server_stop();
    CHECK_FAILS(mirab_limiter_refund(strict, bytes("doubt"), 5, &taken, &error, NULL), MIRAB_STORE_TIMEOUT, "");
    server_go_on();
    CHECK_OK(mirab_limiter_refund(strict, bytes("doubt"), 5, &taken, &error, &units));
    CHECK_NUMBER(units, 0);
    mirab_limiter_free(strict);
}

static void stopped(void) {
    char line[MIRAB_NEWS_SIZE], key[16];
    mirab_options *options;
    mirab_limiter *local, *half, *open = limiter_that("open", NULL, "5/hour", store);
    mirab_limiter *closed = limiter_that("closed", NULL, "5/hour", store), *strict = limiter_on("5/hour", store);
    mirab_stats before, after;
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_OK(mirab_limiter_new("5/hour", store, options, &error, &local));
    CHECK_OK(mirab_options_set_instances(options, 2, &error));
    CHECK_OK(mirab_limiter_new("5/hour", store, options, &error, &half));
    mirab_options_free(options);

    mirab_health health = health_of(local);
    mirab_decision taken = by_the_server(local, key, 2), strictly;
    while (mirab_limiter_acquire(strict, bytes("k"), 1, 1, &error, &strictly) != MIRAB_OK || !strictly.allowed)
        CHECK_OK(mirab_limiter_reset(strict, bytes("k"), 1, &error));
    const uint64_t opened = health_of(local).opened;
    while (next_line(local, line)) continue;
    CHECK_OK(mirab_limiter_stats(local, &error, &before));

    server_stop();
    longest_us = 0;
    goes_on_here(local, key, &taken);
    CHECK(degraded(half, "halves", 2).allowed && degraded(half, "halves", 1).allowed);
    CHECK(!degraded(half, "halves", 1).allowed);
    CHECK(degraded(open, "k", 5).allowed && degraded(open, "k", 5).allowed);
    const mirab_decision refused = degraded(closed, "k", 1);
    CHECK(!refused.allowed && !refused.never && refused.retry_after_us <= 60000000);
    asked_in_every_way(local);
    of_the_store_itself(local, NULL);
    of_the_store_itself(strict, &strictly);
    const uint64_t asked = asked_for(local, 1500000);

    health = health_of(local);
    CHECK(!health.ok && health.opened == opened + 1 && health.last_error.code == MIRAB_STORE_TIMEOUT);
    CHECK_TEXT(health.circuit, "open");
    CHECK(strncmp(health.store, store, strlen(health.store)) == 0);
    CHECK_TEXT(health.server_version, "");
    CHECK(health.clock_ahead_us == MIRAB_NO_CLOCK);
    CHECK(next_line(local, line));
    CHECK(strstr(line, health.store) != NULL && strstr(line, "is not asked any more") != NULL);
    CHECK(!next_line(local, line));
    CHECK_OK(mirab_limiter_stats(local, &error, &after));
    /* 5 about the key that goes on, 5 in other ways and one that waited. */
    CHECK_NUMBER(after.degraded - before.degraded, asked + 11);
    CHECK_NUMBER(after.errors, before.errors);

    server_go_on();
    by_the_server(local, key, 1);
    by_the_server(closed, key, 1);
    CHECK(next_line(open, line));
    CHECK(strstr(line, "decides again") != NULL);

    printf("outage: %" PRIu64 " decisions beside a stopped server; the longest call took %" PRId64 " us, the deadline is %d\n",
           asked, longest_us, DEADLINE_US);
    CHECK(longest_us <= SLOWER * (DEADLINE_US + GRACE_US));
    mirab_limiter_free(local);
    mirab_limiter_free(half);
    mirab_limiter_free(open);
    mirab_limiter_free(closed);
    mirab_limiter_free(strict);
}

int main(void) {
    server_uri(store, sizeof store, "?prefix=outage");
    SCENE(in_doubt());
    SCENE(stopped());
    return tell(0);
}
