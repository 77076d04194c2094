/* Stores that can't be, and one that is away: a bad URI is refused at once; an absent server is found out at the
 * decision, which then is made as was chosen. What a stopped one does is in outage.c. */
#include "check.h"

#define NOBODY "redis://user:hunter2@127.0.0.1:1?timeout_ms=500"

static mirab_error error;

static void bad_uri(const char *uri, const char *part) {
    mirab_limiter *limiter = NULL;
    CHECK_FAILS(mirab_limiter_new("5/minute", uri, NULL, &error, &limiter), MIRAB_INVALID_URI, part);
    CHECK(limiter == NULL);
}

static void bad_choices(void) {
    const int64_t beyond[] = {0, INT64_C(1) << 32};
    mirab_options *options;
    mirab_limiter *limiter = NULL;
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_FAILS(mirab_options_set_on_store_failure(options, "shrug", &error), MIRAB_INVALID_ARGUMENT, "shrug");
    CHECK_FAILS(mirab_options_set_instances(options, -1, &error), MIRAB_INVALID_ARGUMENT, "instances must be");
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(mirab_options_set_instances(options, beyond[i], &error));
        CHECK_FAILS(mirab_limiter_new("5/minute", NOBODY, options, &error, &limiter), MIRAB_INVALID_ARGUMENT,
                    "must be 1 to 4294967295");
    }
    CHECK(limiter == NULL);
    mirab_options_free(options);
}

static void raised(const char *store) {
    mirab_limiter *limiter = limiter_on("5/minute", store);
    mirab_decision decision = {.allowed = false};
    bool allowed = false;
    CHECK_FAILS(mirab_limiter_acquire(limiter, bytes("k"), 1, 1, &error, &decision), MIRAB_STORE_UNAVAILABLE,
                "127.0.0.1:1");
    CHECK(strstr(error.message, "hunter2") == NULL);
    CHECK_FAILS(mirab_limiter_allow(limiter, bytes("k"), 1, 1, &error, &allowed), MIRAB_STORE_UNAVAILABLE,
                "127.0.0.1:1");
    CHECK(!decision.allowed && !allowed);
    mirab_limiter_free(limiter);
}

static mirab_decision degraded(const mirab_limiter *limiter, int64_t cost) {
    mirab_decision decision;
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, cost, &error, &decision));
    CHECK(decision.degraded);
    return decision;
}

/* Without options the same limits are kept here; of several instances each has its part. */
static void decided_here(void) {
    mirab_options *options;
    mirab_limiter *whole, *third;
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_OK(mirab_options_set_instances(options, 3, &error));
    CHECK_OK(mirab_limiter_new("7/hour", NOBODY, NULL, &error, &whole));
    CHECK_OK(mirab_limiter_new("7/hour; 20/day", NOBODY "&prefix=third", options, &error, &third));
    mirab_options_free(options);

    mirab_decision decision = degraded(whole, 6);
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.limit, 7);
    CHECK_NUMBER(decision.remaining, 1);
    CHECK_NUMBER(decision.limit_index, 0);
    CHECK(!degraded(whole, 2).allowed);
    CHECK(degraded(whole, 8).never);

    decision = degraded(third, 2);
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.limit, 3);
    CHECK_NUMBER(decision.remaining, 1);
    decision = degraded(third, 7);
    CHECK(!decision.allowed && !decision.never && decision.retry_after_us != MIRAB_NO_RETRY);
    CHECK(degraded(third, 8).never);
    mirab_limiter_free(whole);
    mirab_limiter_free(third);
}

static void open_or_closed(void) {
    mirab_limiter *open = limiter_that("open", NULL, "5/minute", NOBODY);
    mirab_limiter *closed = limiter_that("closed", NULL, "5/minute", NOBODY);
    for (int i = 0; i < 9; i++) {
        mirab_decision decision = degraded(open, 2);
        CHECK(decision.allowed);
        CHECK_NUMBER(decision.remaining, 5);
        CHECK_NUMBER(decision.used, 0);
        decision = degraded(closed, 2);
        CHECK(!decision.allowed && !decision.never);
        CHECK(decision.retry_after_us >= 1 && decision.retry_after_us <= 60000000);
    }
    mirab_limiter_free(open);
    mirab_limiter_free(closed);
}

/* What a decision took that no store made can't be given back to one, and nobody is troubled with it. */
static void given_back(void) {
    mirab_limiter *limiter = limiter_that("local", NULL, "5/minute; concurrency: 4 for 1 minute", NOBODY "&prefix=given");
    mirab_decision decision = degraded(limiter, 1);
    uint64_t units = 7;
    CHECK(decision.allowed);
    CHECK_OK(mirab_limiter_release(limiter, bytes("k"), 1, &decision, &error, &units));
    CHECK_NUMBER(units, 0);
    CHECK_OK(mirab_limiter_refund(limiter, bytes("k"), 1, &decision, &error, &units));
    CHECK_NUMBER(units, 0);
    CHECK_OK(mirab_limiter_commit(limiter, bytes("k"), 1, &decision, 3, &error));
    mirab_limiter_free(limiter);
}

/* A line is told once, to one of those on the store, and cut where there is no room. */
static void told_once(void) {
    mirab_limiter *one = limiter_that("local", NULL, "5/minute", NOBODY "&prefix=news");
    mirab_limiter *two = limiter_that("open", NULL, "5/minute", NOBODY "&prefix=news");
    char line[64];
    bool told = true;
    memset(line, 'x', sizeof line);
    CHECK_OK(mirab_limiter_take_news(one, &error, &told, line, sizeof line));
    CHECK(!told && line[0] == 'x');
    for (int i = 0; i < 9; i++) degraded(one, 1);

    CHECK_FAILS(mirab_limiter_take_news(two, &error, &told, line, 0), MIRAB_INVALID_ARGUMENT, "room for 1");
    CHECK_OK(mirab_limiter_close(two, &error));
    CHECK_OK(mirab_limiter_take_news(two, &error, &told, line, 20));
    CHECK(told);
    CHECK_TEXT(line, "the store redis://1");
    CHECK(line[20] == 'x');
    CHECK_OK(mirab_limiter_take_news(one, &error, &told, line, sizeof line));
    CHECK(!told);
    mirab_limiter_free(one);
    mirab_limiter_free(two);
}

static mirab_health health_of(const mirab_limiter *limiter) {
    mirab_health health;
    memset(&health, 0x55, sizeof health);
    CHECK_OK(mirab_limiter_health(limiter, &error, &health));
    for (size_t i = 0; i < 16; i++) CHECK_NUMBER(health._reserved[i], 0);
    CHECK(health._reserved_flags[0] == 0 && health._reserved_flags[1] == 0);
    CHECK_NUMBER(health.layout, 1);
    return health;
}

static void health_of_memory(void) {
    mirab_limiter *limiter = limiter_on("5/minute", "memory:");
    const mirab_health health = health_of(limiter);
    CHECK(health.ok && !health.may_drop_keys);
    CHECK_TEXT(health.circuit, "closed");
    CHECK_TEXT(health.store, "memory:");
    CHECK_TEXT(health.server_version, "");
    CHECK_TEXT(health.maxmemory_policy, "");
    CHECK(health.opened == 0 && health.clock_ahead_us == MIRAB_NO_CLOCK);
    CHECK(health.last_error.code == MIRAB_OK);
    CHECK_TEXT(health.last_error.message, "");

    mirab_health other = {.layout = 77};
    CHECK_OK(mirab_limiter_close(limiter, &error));
    CHECK_FAILS(mirab_limiter_health(limiter, &error, &other), MIRAB_CLOSED, "closed");
    CHECK_NUMBER(other.layout, 77);
    mirab_limiter_free(limiter);
}

static void health_of_nobody(void) {
    mirab_limiter *limiter = limiter_that("open", NULL, "5/minute", NOBODY "&prefix=health");
    for (int i = 0; i < 9; i++) degraded(limiter, 1);
    const mirab_health health = health_of(limiter);
    CHECK(!health.ok && health.opened == 1);
    CHECK_TEXT(health.circuit, "open");
    CHECK_TEXT(health.store, "redis://127.0.0.1:1");
    CHECK(health.last_error.code == MIRAB_STORE_UNAVAILABLE);
    CHECK(strstr(health.last_error.message, "refused") != NULL);
    mirab_limiter_free(limiter);
}

/* An address longer than its room is cut. */
static void health_of_a_long_name(void) {
    char name[300] = "redis+unix:///";
    memset(name + strlen(name), 'x', sizeof name - 1 - strlen(name));
    name[sizeof name - 1] = '\0';
    mirab_limiter *limiter = limiter_on("5/minute", name);
    const mirab_health health = health_of(limiter);
    CHECK(!health.ok && memcmp(health.store, name, sizeof health.store - 1) == 0);
    CHECK_NUMBER(strlen(health.store), sizeof health.store - 1);
    mirab_limiter_free(limiter);
}

static void health_of_redis(void) {
    mirab_limiter *limiter = limiter_on("5/minute", test_redis());
    const mirab_health health = health_of(limiter);
    CHECK(health.ok && !health.may_drop_keys);
    CHECK_TEXT(health.circuit, "closed");
    CHECK(strchr(health.server_version, '.') != NULL);
    CHECK_TEXT(health.maxmemory_policy, "noeviction");
    CHECK(health.clock_ahead_us > -60000000 && health.clock_ahead_us < 60000000);
    CHECK(health.last_error.code == MIRAB_OK);
    mirab_limiter_free(limiter);
}

int main(void) {
    SCENE(bad_uri("", ""));
    SCENE(bad_uri("floppy:", "floppy"));
    SCENE(bad_uri("redis://127.0.0.1:6379?colour=red", "colour"));
    SCENE(bad_uri("redis://127.0.0.1:6379?timeout_ms=soon", "soon"));
    SCENE(bad_choices());
    SCENE(raised(NOBODY));
    SCENE(raised("rediss://user:hunter2@127.0.0.1:1?timeout_ms=500"));
    SCENE(decided_here());
    SCENE(open_or_closed());
    SCENE(given_back());
    SCENE(told_once());
    SCENE(health_of_memory());
    SCENE(health_of_nobody());
    SCENE(health_of_a_long_name());
    SCENE(health_of_redis());
    return tell(0);
}
