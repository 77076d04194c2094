/* Limits from text and from numbers: good ones work, bad ones say what is wrong. */
#include "check.h"

static mirab_error error;

static void bad_text(const char *text, const char *part) {
    mirab_limit *limit = NULL;
    mirab_limiter *limiter = NULL;
    CHECK_FAILS(mirab_limit_parse(text, &error, &limit), MIRAB_INVALID_LIMIT, part);
    CHECK_FAILS(mirab_limiter_new(text, "memory:", NULL, &error, &limiter), MIRAB_INVALID_LIMIT, part);
    CHECK(limit == NULL && limiter == NULL);
}

static void texts(void) {
    bad_text("0/second", "0");
    bad_text("-5/minute", "-5");
    bad_text("5/fortnight", "fortnight");
    bad_text("5/m", "m");
    bad_text("nonsense", "nonsense");
    bad_text("5000000000/second", "5000000000");
    bad_text("", "");

    mirab_limit *limit = NULL;
    CHECK_FAILS(mirab_limit_parse("5/\xff", &error, &limit), MIRAB_INVALID_ARGUMENT, "UTF-8");
    CHECK(limit == NULL);
}

static void bad_numbers(void) {
    mirab_limit *limit = NULL;
    CHECK_FAILS(mirab_limit_token_bucket(0, 1000000, &error, &limit), MIRAB_INVALID_LIMIT, "0");
    CHECK_FAILS(mirab_limit_token_bucket(-5, 1000000, &error, &limit), MIRAB_INVALID_LIMIT,
                "limit must be 0 or more, not -5");
    CHECK_FAILS(mirab_limit_token_bucket(5, -1, &error, &limit), MIRAB_INVALID_LIMIT, "-1");
    CHECK_FAILS(mirab_limit_token_bucket(5, 0, &error, &limit), MIRAB_INVALID_LIMIT, "0");
    CHECK_FAILS(mirab_limit_token_bucket(INT64_MAX, 1, &error, &limit), MIRAB_INVALID_LIMIT,
                "9223372036854775807");
    CHECK_FAILS(mirab_limit_token_bucket_refilled(5, "fast", &error, &limit), MIRAB_INVALID_LIMIT, "fast");
    CHECK_FAILS(mirab_limit_token_bucket_refilled(-1, "1", &error, &limit), MIRAB_INVALID_LIMIT, "-1");
    CHECK_FAILS(mirab_limit_fixed_window(5, 1000000, 2, &error, &limit), MIRAB_INVALID_ARGUMENT,
                "MIRAB_ANCHOR_FIRST (1), not 2");
    CHECK(limit == NULL);
}

static void bad_numbers_of_others(void) {
    mirab_limit *limit = NULL;
    CHECK_FAILS(mirab_limit_leaky_bucket(0, 1000000, 5, &error, &limit), MIRAB_INVALID_LIMIT, "deny");
    CHECK_FAILS(mirab_limit_leaky_bucket(5, -7, 5, &error, &limit), MIRAB_INVALID_LIMIT,
                "per_us must be 0 or more, not -7");
    CHECK_FAILS(mirab_limit_leaky_bucket(5, 1000000, -1, &error, &limit), MIRAB_INVALID_LIMIT,
                "queue must be 0 or more, not -1");
    CHECK_FAILS(mirab_limit_leaky_bucket(5, 1000000, UINT32_MAX, &error, &limit), MIRAB_INVALID_LIMIT,
                "queue of 4294967295");
    CHECK_FAILS(mirab_limit_sliding_window(-3, 1000000, &error, &limit), MIRAB_INVALID_LIMIT, "-3");
    CHECK_FAILS(mirab_limit_sliding_window(1, INT64_MAX, &error, &limit), MIRAB_INVALID_LIMIT,
                "9223372036854775807");
    CHECK_FAILS(mirab_limit_sliding_log(5, 60000000, 7, &error, &limit), MIRAB_INVALID_LIMIT, "7 buckets");
    CHECK_FAILS(mirab_limit_sliding_log(5, 60000000, -1, &error, &limit), MIRAB_INVALID_LIMIT,
                "buckets must be 0 or more, not -1");
    CHECK_FAILS(mirab_limit_sliding_log(5, 60000000, 1200, &error, &limit), MIRAB_INVALID_LIMIT, "1200 buckets");
    CHECK_FAILS(mirab_limit_concurrency(0, 1000000, &error, &limit), MIRAB_INVALID_LIMIT, "0");
    CHECK_FAILS(mirab_limit_concurrency(5, 0, &error, &limit), MIRAB_INVALID_LIMIT, "expires");
    CHECK_FAILS(mirab_limit_concurrency(5, -2, &error, &limit), MIRAB_INVALID_LIMIT,
                "expires_us must be 0 or more, not -2");
    CHECK(limit == NULL);
}

/* Makes a limiter of one limit, which is freed first: a limiter keeps its own copy. */
static mirab_limiter *limiter_of(mirab_limit *limit) {
    const mirab_limit *limits[] = {limit};
    mirab_limiter *limiter;
    CHECK_OK(mirab_limiter_from_limits(limits, 1, "memory:", NULL, &error, &limiter));
    mirab_limit_free(limit);
    return limiter;
}

static void is_called(mirab_limit *limit, const char *expected, uint64_t capacity) {
    mirab_limiter *limiter = limiter_of(limit);
    mirab_decision decision;
    const char *name;
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, 1, &error, &decision));
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.limit, capacity);
    CHECK_NUMBER(decision.limit_index, 0);
    CHECK_OK(mirab_limiter_limit_name(limiter, decision.limit_index, &error, &name));
    CHECK_TEXT(name, expected);
    CHECK_FAILS(mirab_limiter_limit_name(limiter, 1, &error, &name), MIRAB_INVALID_ARGUMENT,
                "index must be below 1");
    mirab_limiter_free(limiter);
}

static void good_ones(void) {
    mirab_limit *limit;
    CHECK_OK(mirab_limit_parse("5 per 60 seconds", &error, &limit));
    is_called(limit, "5/minute", 5);

    CHECK_OK(mirab_limit_token_bucket(100, 1000000, &error, &limit));
    CHECK_OK(mirab_limit_set_capacity(limit, 300, &error));
    CHECK_FAILS(mirab_limit_set_capacity(limit, 0, &error), MIRAB_INVALID_LIMIT, "0");
    is_called(limit, "100/second burst 300", 300);

    CHECK_OK(mirab_limit_token_bucket_refilled(10, "0.5", &error, &limit));
    CHECK_OK(mirab_limit_set_name(limit, "slow", &error));
    CHECK_FAILS(mirab_limit_set_name(limit, "no spaces", &error), MIRAB_INVALID_LIMIT, "no spaces");
    is_called(limit, "slow", 10);

    CHECK_OK(mirab_limit_fixed_window(10, 60000000, MIRAB_ANCHOR_CLOCK, &error, &limit));
    CHECK_FAILS(mirab_limit_set_capacity(limit, 20, &error), MIRAB_INVALID_LIMIT, "");
    is_called(limit, "fixed_window: 10/minute", 10);

    CHECK_OK(mirab_limit_fixed_window(10, 60000000, MIRAB_ANCHOR_FIRST, &error, &limit));
    is_called(limit, "fixed_window: 10/minute from first", 10);
}

static unsigned stores;

/* A constructor and its notation are one limit: on one store they share their units. */
static void is_the_same(mirab_limit *limit, const char *notation, uint64_t capacity) {
    char store[32];
    mirab_limiter *numbers, *text;
    mirab_decision decision;
    snprintf(store, sizeof store, "memory:limit-%u", ++stores);
    const mirab_limit *limits[] = {limit};
    CHECK_OK(mirab_limiter_from_limits(limits, 1, store, NULL, &error, &numbers));
    CHECK_OK(mirab_limiter_new(notation, store, NULL, &error, &text));
    CHECK_OK(mirab_limiter_acquire(numbers, bytes("k"), 1, 1, &error, &decision));
    CHECK_NUMBER(decision.remaining, capacity - 1);
    CHECK_OK(mirab_limiter_acquire(text, bytes("k"), 1, 1, &error, &decision));
    CHECK_NUMBER(decision.limit, capacity);
    CHECK_NUMBER(decision.remaining, capacity - 2);
    mirab_limiter_free(numbers);
    mirab_limiter_free(text);
    is_called(limit, notation, capacity);
}

static void every_algorithm(void) {
    mirab_limit *limit;
    CHECK_OK(mirab_limit_leaky_bucket(50, 3600000000, 20, &error, &limit));
    is_the_same(limit, "leaky_bucket: 50/hour queue 20", 21);

    CHECK_OK(mirab_limit_leaky_bucket(50, 3600000000, 0, &error, &limit));
    is_called(limit, "leaky_bucket: 50/hour", 1);

    CHECK_OK(mirab_limit_sliding_window(10, 3600000000, &error, &limit));
    is_the_same(limit, "sliding_window: 10/hour", 10);

    CHECK_OK(mirab_limit_sliding_log(5, 3600000000, 0, &error, &limit));
    is_the_same(limit, "sliding_log: 5/hour", 5);

    CHECK_OK(mirab_limit_sliding_log(5, 3600000000, 6, &error, &limit));
    CHECK_FAILS(mirab_limit_set_capacity(limit, 20, &error), MIRAB_INVALID_LIMIT, "20");
    is_the_same(limit, "sliding_log: 5/hour buckets 6", 5);

    CHECK_OK(mirab_limit_concurrency(20, 30000000, &error, &limit));
    is_the_same(limit, "concurrency: 20 for 30 seconds", 20);

    CHECK_OK(mirab_limit_concurrency(20, 30000000, &error, &limit));
    CHECK_OK(mirab_limit_set_name(limit, "db", &error));
    is_called(limit, "db", 20);
}

static void none(void) {
    mirab_limiter *limiter = NULL;
    CHECK_FAILS(mirab_limiter_from_limits(NULL, 0, "memory:", NULL, &error, &limiter), MIRAB_INVALID_LIMIT,
                "");
    CHECK(limiter == NULL);
}

int main(void) {
    SCENE(texts());
    SCENE(bad_numbers());
    SCENE(bad_numbers_of_others());
    SCENE(good_ones());
    SCENE(every_algorithm());
    SCENE(none());
    return tell(0);
}
