/* Quotas of a day, a week and a month: they end at midnight there, to the microsecond. */
#include "check.h"

static mirab_error error;

/* In the window from `begin_us` to `end_us` three pass, wherever in it they are asked; then three more. */
static void window(const char *limits, int64_t begin_us, int64_t end_us, const char *store) {
    mirab_manual_clock *clock;
    mirab_decision decision;
    mirab_limit *limit;
    CHECK_OK(mirab_manual_clock_new(begin_us, &error, &clock));
    CHECK_OK(mirab_limit_parse(limits, &error, &limit));
    mirab_limit_free(limit);
    mirab_limiter *limiter = limiter_by(clock, limits, store);
    CHECK_OK(mirab_limiter_acquire(limiter, bytes(limits), strlen(limits), 2, &error, &decision));
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.reset_after_us, (uint64_t)(end_us - begin_us));
    CHECK_OK(mirab_limiter_acquire(limiter, bytes(limits), strlen(limits), 2, &error, &decision));
    CHECK(!decision.allowed);
    CHECK_NUMBER(decision.retry_after_us, (uint64_t)(end_us - begin_us));

    CHECK_OK(mirab_manual_clock_set_us(clock, end_us - 1, &error));
    CHECK_OK(mirab_limiter_peek(limiter, bytes(limits), strlen(limits), 2, &error, &decision));
    CHECK(!decision.allowed);
    CHECK_NUMBER(decision.retry_after_us, 1);
    CHECK_OK(mirab_limiter_wait(limiter, bytes(limits), strlen(limits), 2, MIRAB_FOREVER, &error, &decision));
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.remaining, 1);
    mirab_limiter_free(limiter);
    mirab_manual_clock_free(clock);
}

int main(void) {
    const char *stores[] = {"memory:", test_shm(), test_redis()};
    const int64_t s = 1000000;
    mirab_limit *limit = NULL;
    for (size_t i = 0; i < 3; i++) {
        /* October 2023: an hour more, since summer time ends within. */
        SCENE(window("fixed_window: 3/month in Africa/Cairo", 1696107600 * s, 1698789600 * s, stores[i]));
        /* 10 March and 3 November 2024: days of 23 and 25 hours. */
        SCENE(window("fixed_window: 3/day in America/New_York", 1710046800 * s, 1710129600 * s, stores[i]));
        SCENE(window("fixed_window: 3/day in America/New_York", 1730606400 * s, 1730696400 * s, stores[i]));
        /* A week from Monday, over a leap day. */
        SCENE(window("fixed_window: 3/week in Asia/Tashkent", 1708887600 * s, 1709492400 * s, stores[i]));
    }
    CHECK_FAILS(mirab_limit_parse("fixed_window: 3/month in Africa/Atlantis", &error, &limit), MIRAB_INVALID_LIMIT,
                "Atlantis");
    CHECK_FAILS(mirab_limit_parse("sliding_log: 3/month in Africa/Cairo", &error, &limit), MIRAB_INVALID_LIMIT, "");
    CHECK(limit == NULL);
    return tell(0);
}
