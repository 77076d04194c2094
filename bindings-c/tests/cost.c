/* Costs: 0 to 2^53. A negative one is an error that names it, never a huge number. */
#include "check.h"

static void costs(void) {
    mirab_error error;
    mirab_limiter *limiter;
    mirab_decision decision = {.limit = 777};
    bool allowed = true;
    const int64_t highest = INT64_C(1) << 53;

    CHECK_OK(mirab_limiter_new("5/minute", "memory:", NULL, &error, &limiter));
    CHECK_FAILS(mirab_limiter_acquire(limiter, bytes("k"), 1, -1, &error, &decision), MIRAB_INVALID_ARGUMENT,
                "cost must be 0 or more, not -1");
    CHECK_FAILS(mirab_limiter_peek(limiter, bytes("k"), 1, INT64_MIN, &error, &decision),
                MIRAB_INVALID_ARGUMENT, "-9223372036854775808");
    CHECK_FAILS(mirab_limiter_allow(limiter, bytes("k"), 1, -5, &error, &allowed), MIRAB_INVALID_ARGUMENT,
                "-5");
    CHECK_FAILS(mirab_limiter_acquire(limiter, bytes("k"), 1, highest + 1, &error, &decision),
                MIRAB_INVALID_ARGUMENT, "9007199254740993");

    /* Outputs are written only on success. */
    CHECK_NUMBER(decision.limit, 777);
    CHECK(allowed);

    memset(&error, 0x55, sizeof error);
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, highest, &error, &decision));
    CHECK(!decision.allowed && decision.never);
    CHECK_NUMBER(decision.remaining, 5);

    /* And the error only on failure. */
    for (size_t i = 0; i < sizeof error.message; i++) CHECK(error.message[i] == 0x55);

    mirab_limiter_free(limiter);
}

int main(void) {
    SCENE(costs());
    return tell(0);
}
