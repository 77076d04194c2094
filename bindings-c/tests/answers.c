/* What a client is told: what tests/http/answers.json doesn't hold, a store that fails and what is C's own. */
#include "check.h"

static mirab_error error;
static mirab_manual_clock *clock;

static mirab_answers *answers_of(const char *family) {
    mirab_answers *answers;
    CHECK_OK(mirab_answers_new(&family, family != NULL, &error, &answers));
    return answers;
}

/* The value of a header field; "" where there is none. */
static const char *field(const mirab_answer *answer, const char *wanted) {
    const char *name, *value;
    bool is_there;
    for (uint32_t index = 0;; index++) {
        CHECK_OK(mirab_answer_field(answer, index, &error, &is_there, &name, &value));
        if (!is_there) return "";
        if (strcmp(name, wanted) == 0) return value;
    }
}

static uint32_t status_of(const mirab_answer *answer) {
    uint32_t status;
    CHECK_OK(mirab_answer_status(answer, &error, &status));
    return status;
}

static const char *body_of(const mirab_answer *answer) {
    const char *body;
    CHECK_OK(mirab_answer_body(answer, &error, &body));
    return body == NULL ? "" : body;
}

static mirab_answer *acquire(const mirab_limiter *limiter, const mirab_answers *answers, int64_t cost,
                             mirab_decision *decision) {
    mirab_answer *answer;
    CHECK_OK(mirab_limiter_acquire_with_answer(limiter, bytes("k"), 1, cost, answers, &error, decision, &answer));
    return answer;
}

/* The decision is that of `mirab_limiter_acquire`; a peek tells the same and takes nothing. */
static void decides_as_ever(const char *store) {
    mirab_limiter *limiter = limiter_by(clock, "2/minute", store);
    mirab_answers *answers = answers_of("draft-8");
    mirab_decision decision, peeked;
    mirab_answer *answer, *peek;
    for (uint64_t left = 2; left-- > 0;) {
        CHECK_OK(mirab_limiter_peek_with_answer(limiter, bytes("k"), 1, 1, answers, &error, &peeked, &peek));
        answer = acquire(limiter, answers, 1, &decision);
        CHECK(decision.allowed && peeked.allowed);
        CHECK_NUMBER(decision.remaining, left);
        CHECK_NUMBER(status_of(peek), 200);
        CHECK_NUMBER(status_of(answer), 200);
        mirab_answer_free(peek);
        mirab_answer_free(answer);
    }
    CHECK_OK(mirab_limiter_peek_with_answer(limiter, bytes("k"), 1, 1, answers, &error, &peeked, &peek));
    answer = acquire(limiter, answers, 1, &decision);
    CHECK(!decision.allowed && !peeked.allowed);
    CHECK_NUMBER(status_of(answer), 429);
    CHECK_NUMBER(status_of(peek), 429);
    CHECK_TEXT(field(answer, "RateLimit"), "\"2/minute\";r=0;t=30");
    CHECK_TEXT(field(answer, "Retry-After"), "30");
    CHECK_TEXT(field(peek, "Retry-After"), "30");
    CHECK_TEXT(body_of(answer), "");
    mirab_answer_free(peek);
    mirab_answer_free(answer);
    mirab_answers_free(answers);
    mirab_limiter_free(limiter);
}

/* Nobody could decide, and "closed" was chosen: that isn't the client's fault. */
static void the_store_is_away(void) {
    mirab_limiter *limiter = limiter_that("closed", NULL, "5/minute", "redis://127.0.0.1:1");
    mirab_answers *answers = answers_of("draft-8");
    mirab_decision decision;
    CHECK_OK(mirab_answers_set_body(answers, "problem", &error));
    mirab_answer *answer = acquire(limiter, answers, 1, &decision);
    CHECK(!decision.allowed && decision.degraded);
    CHECK_NUMBER(status_of(answer), 503);
    CHECK_TEXT(field(answer, "RateLimit"), "");
    CHECK_TEXT(field(answer, "Retry-After"), "1");
    CHECK_TEXT(field(answer, "Content-Type"), "application/problem+json");
    CHECK(strstr(body_of(answer), "#temporary-reduced-capacity\"") != NULL);
    CHECK(strstr(body_of(answer), "\"status\":503,") != NULL);
    mirab_answer_free(answer);
    mirab_limiter_free(limiter);

    limiter = limiter_that("raise", NULL, "5/minute", "redis://127.0.0.1:1");
    answer = NULL;
    CHECK_FAILS(mirab_limiter_acquire_with_answer(limiter, bytes("k"), 1, 1, answers, &error, &decision, &answer),
                MIRAB_STORE_UNAVAILABLE, "127.0.0.1:1");
    CHECK(answer == NULL);
    mirab_answers_free(answers);
    mirab_limiter_free(limiter);
}

/* Who would be held too long is refused by the answer alone, and what he took can be given back. */
static void held_too_long(void) {
    mirab_limiter *limiter = limiter_by(clock, "leaky_bucket: 1/second queue 9", "memory:");
    mirab_answers *answers = answers_of("draft-8");
    mirab_decision decision;
    uint64_t units;
    CHECK_OK(mirab_answers_set_max_hold(answers, 3000000, &error));
    for (int turn = 0; turn < 4; turn++) {
        mirab_answer *held = acquire(limiter, answers, 1, &decision);
        CHECK_NUMBER(status_of(held), 200);
        mirab_answer_free(held);
    }
    for (int turn = 0; turn < 9; turn++) {
        mirab_answer *refused = acquire(limiter, answers, 1, &decision);
        CHECK(decision.allowed);
        CHECK_NUMBER(decision.delay_us, 4000000);
        CHECK_NUMBER(status_of(refused), 429);
        CHECK_TEXT(field(refused, "Retry-After"), "1");
        mirab_answer_free(refused);
        CHECK_OK(mirab_limiter_refund(limiter, bytes("k"), 1, &decision, &error, &units));
        CHECK_NUMBER(units, 1);
    }
    mirab_answers_free(answers);
    mirab_limiter_free(limiter);
}

/* Each process has a salt of its own; the key is told in its hash only, and only where that was asked for. */
static void partitions(void) {
    mirab_limiter *limiter = limiter_by(clock, "5/minute", "memory:");
    mirab_answers *answers = answers_of("draft-8");
    mirab_decision decision;
    mirab_answer *answer = acquire(limiter, answers, 1, &decision);
    CHECK_TEXT(field(answer, "RateLimit-Policy"), "\"5/minute\";q=5;w=60");
    mirab_answer_free(answer);
    CHECK_OK(mirab_answers_set_partitions(answers, true, &error));
    mirab_answer *once = acquire(limiter, answers, 1, &decision), *again = acquire(limiter, answers, 1, &decision);
    CHECK(strstr(field(once, "RateLimit-Policy"), ";pk=:") != NULL);
    CHECK_TEXT(field(once, "RateLimit-Policy"), field(again, "RateLimit-Policy"));
    CHECK_OK(mirab_answers_set_partition_salt(answers, bytes("0123456789abcdef"), 16, &error));
    answer = acquire(limiter, answers, 1, &decision);
    CHECK(strcmp(field(once, "RateLimit-Policy"), field(answer, "RateLimit-Policy")) != 0);
    mirab_answer_free(answer);
    mirab_answer_free(again);
    mirab_answer_free(once);
    mirab_answers_free(answers);
    mirab_limiter_free(limiter);
}

/* What can't be used is an error that names it, and changes nothing. */
static void settings(void) {
    mirab_limiter *limiter = limiter_by(clock, "1/minute", "memory:");
    mirab_answers *answers = answers_of("x-ratelimit"), *none = NULL;
    const char *families[] = {"draft-8", "draft-99"}, *no_text[] = {"\xff"};
    mirab_decision decision;
    mirab_answer *answer = NULL;
    CHECK_FAILS(mirab_answers_new(families, 2, &error, &none), MIRAB_INVALID_ARGUMENT, "\"draft-99\"");
    CHECK_FAILS(mirab_answers_new(no_text, 1, &error, &none), MIRAB_INVALID_ARGUMENT, "one of families must be UTF-8");
    CHECK(none == NULL);
    CHECK_OK(mirab_answers_set_body(answers, "json", &error));
    CHECK_OK(mirab_answers_set_policy_name(answers, "login", &error));
    CHECK_FAILS(mirab_answers_set_body(answers, "xml", &error), MIRAB_INVALID_ARGUMENT, "\"xml\"");
    CHECK_FAILS(mirab_answers_set_policy_name(answers, "\xff", &error), MIRAB_INVALID_ARGUMENT, "name must be UTF-8");
    CHECK_FAILS(mirab_answers_set_partition_salt(answers, bytes("0123456789abcde"), 15, &error), MIRAB_INVALID_ARGUMENT,
                "15 bytes");
    CHECK_FAILS(mirab_answers_set_max_hold(answers, -1, &error), MIRAB_INVALID_ARGUMENT, "longest_us must be 0 or more");
    CHECK_OK(mirab_answers_set_max_hold(answers, INT64_MAX, &error));
    CHECK_FAILS(mirab_limiter_acquire_with_answer(limiter, bytes("k"), 1, -1, answers, &error, &decision, &answer),
                MIRAB_INVALID_ARGUMENT, "cost must be 0 or more");
    CHECK_FAILS(mirab_limiter_acquire_with_answer(limiter, bytes(""), 0, 1, answers, &error, &decision, &answer),
                MIRAB_INVALID_ARGUMENT, "key");
    CHECK(answer == NULL);
    mirab_answer_free(acquire(limiter, answers, 1, &decision));
    answer = acquire(limiter, answers, 1, &decision);
    CHECK_TEXT(field(answer, "X-RateLimit-Limit"), "1");
    CHECK(strstr(body_of(answer), "\"limit\":\"login\"") != NULL);
    mirab_answer_free(answer);
    mirab_answers_free(answers);
    mirab_limiter_free(limiter);
}

int main(void) {
    CHECK_OK(mirab_manual_clock_new(1000500000, &error, &clock));
    SCENE(decides_as_ever("memory:"));
    SCENE(decides_as_ever(test_shm()));
    SCENE(decides_as_ever(test_redis()));
    SCENE(the_store_is_away());
    SCENE(held_too_long());
    SCENE(partitions());
    SCENE(settings());
    mirab_manual_clock_free(clock);
    return tell(0);
}
