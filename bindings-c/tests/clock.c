/* The manual clock, and a clock that is the program's own. */
#include "check.h"

static mirab_error error;

static void by_hand(void) {
    mirab_manual_clock *clock;
    uint64_t now_us;
    CHECK_OK(mirab_manual_clock_new(5, &error, &clock));
    CHECK_OK(mirab_manual_clock_advance_us(clock, 10, &error));
    CHECK_OK(mirab_manual_clock_now_us(clock, &error, &now_us));
    CHECK_NUMBER(now_us, 15);
    CHECK_OK(mirab_manual_clock_set_us(clock, 3, &error));
    CHECK_OK(mirab_manual_clock_now_us(clock, &error, &now_us));
    CHECK_NUMBER(now_us, 3);

    const int64_t end = INT64_C(1) << 52;
    CHECK_FAILS(mirab_manual_clock_advance_us(clock, -1, &error), MIRAB_INVALID_ARGUMENT, "-1");
    CHECK_FAILS(mirab_manual_clock_set_us(clock, -7, &error), MIRAB_INVALID_ARGUMENT, "-7");
    CHECK_FAILS(mirab_manual_clock_set_us(clock, end + 1, &error), MIRAB_INVALID_ARGUMENT,
                "4503599627370497");
    CHECK_FAILS(mirab_manual_clock_advance_us(clock, end, &error), MIRAB_INVALID_ARGUMENT, "");
    CHECK_OK(mirab_manual_clock_now_us(clock, &error, &now_us));
    CHECK_NUMBER(now_us, 3);
    mirab_manual_clock_free(clock);

    clock = NULL;
    CHECK_FAILS(mirab_manual_clock_new(-1, &error, &clock), MIRAB_INVALID_ARGUMENT, "-1");
    CHECK_FAILS(mirab_manual_clock_new(end + 1, &error, &clock), MIRAB_INVALID_ARGUMENT, "4503599627370497");
    CHECK(clock == NULL);
}

struct watch {
    uint64_t now_us;
    uint32_t result;
    unsigned calls;
};

static uint32_t read_watch(void *userdata, uint64_t *now_us) {
    struct watch *watch = userdata;
    watch->calls++;
    *now_us = watch->now_us;
    return watch->result;
}

static void of_the_program(const char *store) {
    struct watch watch = {.now_us = 1000000};
    mirab_options *options;
    mirab_limiter *limiter;
    mirab_decision decision;
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_OK(mirab_options_set_clock_callback(options, read_watch, &watch, &error));
    CHECK_OK(mirab_options_set_on_store_failure(options, "raise", &error));
    CHECK_OK(mirab_limiter_new("1/second", store, options, &error, &limiter));

    CHECK_OK(mirab_limiter_acquire(limiter, bytes("watch"), 5, 1, &error, &decision));
    CHECK(decision.allowed);
    CHECK_NUMBER(watch.calls, 1);
    watch.now_us += 400000;
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("watch"), 5, 1, &error, &decision));
    CHECK(!decision.allowed);
    CHECK_NUMBER(decision.retry_after_us, 600000);
    CHECK_NUMBER(watch.calls, 2);

    watch.result = 42;
    CHECK_FAILS(mirab_limiter_acquire(limiter, bytes("watch"), 5, 1, &error, &decision),
                MIRAB_INVALID_ARGUMENT, "returned 42");
    watch.result = MIRAB_OK;
    watch.now_us = UINT64_MAX;
    CHECK_FAILS(mirab_limiter_acquire(limiter, bytes("watch"), 5, 1, &error, &decision),
                MIRAB_INVALID_ARGUMENT, "18446744073709551615");
    mirab_limiter_free(limiter);
    mirab_options_free(options);
}

/* The handle may go before the limiters that go by it. */
static void freed_first(void) {
    mirab_manual_clock *clock;
    mirab_options *options;
    mirab_limiter *limiter;
    mirab_decision decision;
    CHECK_OK(mirab_manual_clock_new(0, &error, &clock));
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_OK(mirab_options_set_manual_clock(options, clock, &error));
    mirab_manual_clock_free(clock);
    CHECK_OK(mirab_limiter_new("1/second", "memory:", options, &error, &limiter));
    mirab_options_free(options);
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, 1, &error, &decision));
    CHECK_NUMBER(decision.reset_after_us, 1000000);
    mirab_limiter_free(limiter);
}

int main(void) {
    SCENE(by_hand());
    SCENE(of_the_program("memory:"));
    SCENE(of_the_program(test_shm()));
    SCENE(of_the_program(test_redis()));
    SCENE(freed_first());
    return tell(0);
}
