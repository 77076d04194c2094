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

static void none(void) {
    mirab_limiter *limiter = NULL;
    CHECK_FAILS(mirab_limiter_from_limits(NULL, 0, "memory:", NULL, &error, &limiter), MIRAB_INVALID_LIMIT,
                "");
    CHECK(limiter == NULL);
}

int main(void) {
    SCENE(texts());
    SCENE(bad_numbers());
    SCENE(good_ones());
    SCENE(none());
    return tell(0);
}
