/* NULL for every pointer of every function: a result code, and nothing is done. */
#include "check.h"

static mirab_error error;
static mirab_limiter *limiter, *no_limiter;
static mirab_limit *limit, *no_limit;
static mirab_options *options, *no_options;
static mirab_manual_clock *clock, *no_clock;
static mirab_decision decision;
static bool allowed;
static mirab_standing standings[1];
static uint64_t now_us, ended;
static mirab_stats stats;
static mirab_health health;
static char line[MIRAB_NEWS_SIZE];
static uint32_t count;
static const char *name, *value;
static mirab_clients *no_clients;
static mirab_answers *no_answers;
static mirab_answer *no_answer;

#define NULL_IN(call, what) CHECK_FAILS(call, MIRAB_NULL_POINTER, what " is NULL")
#define ALL_NULL_IN(function)                                                                                \
    do {                                                                                                     \
        NULL_IN(function(NULL, bytes("k"), 1, 1, &error, &decision, standings, 1), "limiter");               \
        NULL_IN(function(limiter, NULL, 1, 1, &error, &decision, standings, 1), "key");                      \
        NULL_IN(function(limiter, bytes("k"), 1, 1, &error, NULL, standings, 1), "out");                     \
        NULL_IN(function(limiter, bytes("k"), 1, 1, &error, &decision, NULL, 1), "out_standings");           \
    } while (0)

static uint32_t noon(void *userdata, uint64_t *out) {
    (void)userdata;
    *out = 43200000000;
    return MIRAB_OK;
}

static void limits(void) {
    CHECK_OK(mirab_limit_parse("5/minute", &error, &limit));
    NULL_IN(mirab_limit_parse(NULL, &error, &no_limit), "notation");
    NULL_IN(mirab_limit_parse("5/minute", &error, NULL), "out");
    NULL_IN(mirab_limit_token_bucket(5, 1, &error, NULL), "out");
    NULL_IN(mirab_limit_token_bucket_refilled(5, NULL, &error, &no_limit), "refill_rate");
    NULL_IN(mirab_limit_token_bucket_refilled(5, "1", &error, NULL), "out");
    NULL_IN(mirab_limit_fixed_window(5, 1, MIRAB_ANCHOR_CLOCK, &error, NULL), "out");
    NULL_IN(mirab_limit_leaky_bucket(5, 1, 0, &error, NULL), "out");
    NULL_IN(mirab_limit_sliding_window(5, 1, &error, NULL), "out");
    NULL_IN(mirab_limit_sliding_log(5, 1, 0, &error, NULL), "out");
    NULL_IN(mirab_limit_concurrency(5, 1, &error, NULL), "out");
    NULL_IN(mirab_limit_set_capacity(NULL, 5, &error), "limit");
    NULL_IN(mirab_limit_set_name(NULL, "n", &error), "limit");
    NULL_IN(mirab_limit_set_name(limit, NULL, &error), "name");
}

static void clocks(void) {
    CHECK_OK(mirab_manual_clock_new(0, &error, &clock));
    NULL_IN(mirab_manual_clock_new(0, &error, NULL), "out");
    NULL_IN(mirab_manual_clock_advance_us(NULL, 1, &error), "clock");
    NULL_IN(mirab_manual_clock_set_us(NULL, 1, &error), "clock");
    NULL_IN(mirab_manual_clock_now_us(NULL, &error, &now_us), "clock");
    NULL_IN(mirab_manual_clock_now_us(clock, &error, NULL), "out");
}

static void all_options(void) {
    CHECK_OK(mirab_options_new(&error, &options));
    NULL_IN(mirab_options_new(&error, NULL), "out");
    NULL_IN(mirab_options_set_manual_clock(NULL, clock, &error), "options");
    NULL_IN(mirab_options_set_manual_clock(options, NULL, &error), "clock");
    NULL_IN(mirab_options_set_clock_callback(NULL, noon, NULL, &error), "options");
    NULL_IN(mirab_options_set_clock_callback(options, NULL, NULL, &error), "read");
    NULL_IN(mirab_options_set_on_store_failure(NULL, "raise", &error), "options");
    NULL_IN(mirab_options_set_on_store_failure(options, NULL, &error), "choice");
    NULL_IN(mirab_options_set_instances(NULL, 1, &error), "options");
}

static void limiters(void) {
    const uint8_t *keys[] = {bytes("k"), NULL};
    const size_t lens[] = {1, 1};
    const int64_t costs[] = {1, 1};
    mirab_decision decisions[2];
    const mirab_limit *one[] = {limit}, *none[] = {NULL};
    CHECK_OK(mirab_limiter_new("2/minute", "memory:", NULL, &error, &limiter));
    NULL_IN(mirab_limiter_new(NULL, "memory:", NULL, &error, &no_limiter), "limits");
    NULL_IN(mirab_limiter_new("5/minute", NULL, NULL, &error, &no_limiter), "store");
    NULL_IN(mirab_limiter_new("5/minute", "memory:", NULL, &error, NULL), "out");
    NULL_IN(mirab_limiter_from_limits(NULL, 1, "memory:", NULL, &error, &no_limiter), "limits");
    NULL_IN(mirab_limiter_from_limits(none, 1, "memory:", NULL, &error, &no_limiter), "limits");
    NULL_IN(mirab_limiter_from_limits(one, 1, NULL, NULL, &error, &no_limiter), "store");
    NULL_IN(mirab_limiter_from_limits(one, 1, "memory:", NULL, &error, NULL), "out");

    NULL_IN(mirab_limiter_acquire(NULL, bytes("k"), 1, 1, &error, &decision), "limiter");
    NULL_IN(mirab_limiter_acquire(limiter, NULL, 1, 1, &error, &decision), "key");
    NULL_IN(mirab_limiter_acquire(limiter, bytes("k"), 1, 1, &error, NULL), "out");
    NULL_IN(mirab_limiter_allow(NULL, bytes("k"), 1, 1, &error, &allowed), "limiter");
    NULL_IN(mirab_limiter_allow(limiter, NULL, 1, 1, &error, &allowed), "key");
    NULL_IN(mirab_limiter_allow(limiter, bytes("k"), 1, 1, &error, NULL), "out");
    NULL_IN(mirab_limiter_peek(NULL, bytes("k"), 1, 1, &error, &decision), "limiter");
    NULL_IN(mirab_limiter_peek(limiter, NULL, 1, 1, &error, &decision), "key");
    NULL_IN(mirab_limiter_peek(limiter, bytes("k"), 1, 1, &error, NULL), "out");
    ALL_NULL_IN(mirab_limiter_acquire_with_standings);
    ALL_NULL_IN(mirab_limiter_peek_with_standings);
    NULL_IN(mirab_limiter_release(NULL, bytes("k"), 1, &decision, &error, &ended), "limiter");
    NULL_IN(mirab_limiter_release(limiter, NULL, 1, &decision, &error, &ended), "key");
    NULL_IN(mirab_limiter_release(limiter, bytes("k"), 1, NULL, &error, &ended), "decision");
    NULL_IN(mirab_limiter_refund(NULL, bytes("k"), 1, &decision, &error, &ended), "limiter");
    NULL_IN(mirab_limiter_refund(limiter, NULL, 1, &decision, &error, &ended), "key");
    NULL_IN(mirab_limiter_refund(limiter, bytes("k"), 1, NULL, &error, &ended), "decision");
    NULL_IN(mirab_limiter_commit(NULL, bytes("k"), 1, &decision, 1, &error), "limiter");
    NULL_IN(mirab_limiter_commit(limiter, NULL, 1, &decision, 1, &error), "key");
    NULL_IN(mirab_limiter_commit(limiter, bytes("k"), 1, NULL, 1, &error), "decision");
    NULL_IN(mirab_limiter_wait(NULL, bytes("k"), 1, 1, 0, &error, &decision), "limiter");
    NULL_IN(mirab_limiter_wait(limiter, NULL, 1, 1, 0, &error, &decision), "key");
    NULL_IN(mirab_limiter_wait(limiter, bytes("k"), 1, 1, 0, &error, NULL), "out");
    NULL_IN(mirab_limiter_acquire_many(NULL, keys, lens, costs, 2, &error, decisions), "limiter");
    NULL_IN(mirab_limiter_acquire_many(limiter, NULL, lens, costs, 2, &error, decisions), "keys");
    NULL_IN(mirab_limiter_acquire_many(limiter, keys, NULL, costs, 2, &error, decisions), "key_lens");
    NULL_IN(mirab_limiter_acquire_many(limiter, keys, lens, costs, 2, &error, NULL), "out");
    NULL_IN(mirab_limiter_acquire_many(limiter, keys, lens, costs, 2, &error, decisions), "item 1: key");
    NULL_IN(mirab_limiter_block(NULL, bytes("k"), 1, 1, &error), "limiter");
    NULL_IN(mirab_limiter_block(limiter, NULL, 1, 1, &error), "key");
    NULL_IN(mirab_limiter_unblock(NULL, bytes("k"), 1, &error), "limiter");
    NULL_IN(mirab_limiter_unblock(limiter, NULL, 1, &error), "key");
    NULL_IN(mirab_limiter_stats(NULL, &error, &stats), "limiter");
    NULL_IN(mirab_limiter_stats(limiter, &error, NULL), "out");
    NULL_IN(mirab_limiter_health(NULL, &error, &health), "limiter");
    NULL_IN(mirab_limiter_health(limiter, &error, NULL), "out");
    NULL_IN(mirab_limiter_take_news(NULL, &error, &allowed, line, sizeof line), "limiter");
    NULL_IN(mirab_limiter_take_news(limiter, &error, NULL, line, sizeof line), "out");
    NULL_IN(mirab_limiter_take_news(limiter, &error, &allowed, NULL, sizeof line), "out_line");
    NULL_IN(mirab_limiter_limit_count(NULL, &error, &count), "limiter");
    NULL_IN(mirab_limiter_limit_count(limiter, &error, NULL), "out");
    NULL_IN(mirab_limiter_reset(NULL, bytes("k"), 1, &error), "limiter");
    NULL_IN(mirab_limiter_reset(limiter, NULL, 1, &error), "key");
    NULL_IN(mirab_limiter_limit_name(NULL, 0, &error, &name), "limiter");
    NULL_IN(mirab_limiter_limit_name(limiter, 0, &error, NULL), "out");
    NULL_IN(mirab_limiter_close(NULL, &error), "limiter");

    CHECK_OK(mirab_limiter_peek(limiter, bytes("k"), 1, 1, &error, &decision));
    CHECK_NUMBER(decision.remaining, 2);
}

static void all_clients(void) {
    const char *none[] = {NULL};
    char key[MIRAB_CLIENT_KEY_SIZE] = "";
    mirab_clients *clients;
    CHECK_OK(mirab_clients_new(&error, &clients));
    NULL_IN(mirab_clients_new(&error, NULL), "out");
    NULL_IN(mirab_clients_trust(NULL, none, 0, &error), "clients");
    NULL_IN(mirab_clients_trust(clients, NULL, 1, &error), "proxies");
    NULL_IN(mirab_clients_trust(clients, none, 1, &error), "one of proxies");
    NULL_IN(mirab_clients_trust_hops(NULL, 1, &error), "clients");
    NULL_IN(mirab_clients_set_header(NULL, "Forwarded", &error), "clients");
    NULL_IN(mirab_clients_set_header(clients, NULL, &error), "name");
    NULL_IN(mirab_clients_set_ipv6_prefix(NULL, 64, &error), "clients");
    NULL_IN(mirab_clients_key(NULL, "::1", none, 0, &error, &allowed, key, sizeof key), "clients");
    NULL_IN(mirab_clients_key(clients, "::1", NULL, 1, &error, &allowed, key, sizeof key), "lines");
    NULL_IN(mirab_clients_key(clients, "::1", none, 1, &error, &allowed, key, sizeof key), "one of lines");
    NULL_IN(mirab_clients_key(clients, "::1", none, 0, &error, NULL, key, sizeof key), "out");
    NULL_IN(mirab_clients_key(clients, "::1", none, 0, &error, &allowed, NULL, sizeof key), "out_key");
    CHECK(*key == '\0');
    mirab_clients_free(clients);
}

#define ALL_NULL_IN_ANSWER(function)                                                                         \
    do {                                                                                                     \
        NULL_IN(function(NULL, bytes("k"), 1, 1, answers, &error, &decision, &no_answer), "limiter");        \
        NULL_IN(function(limiter, NULL, 1, 1, answers, &error, &decision, &no_answer), "key");               \
        NULL_IN(function(limiter, bytes("k"), 1, 1, NULL, &error, &decision, &no_answer), "answers");        \
        NULL_IN(function(limiter, bytes("k"), 1, 1, answers, &error, NULL, &no_answer), "out");              \
        NULL_IN(function(limiter, bytes("k"), 1, 1, answers, &error, &decision, NULL), "out_answer");        \
    } while (0)

static void all_answers(void) {
    const char *none[] = {NULL}, *body = NULL;
    mirab_answers *answers;
    mirab_answer *answer;
    CHECK_OK(mirab_answers_new(NULL, 0, &error, &answers));
    NULL_IN(mirab_answers_new(NULL, 1, &error, &no_answers), "families");
    NULL_IN(mirab_answers_new(none, 1, &error, &no_answers), "one of families");
    NULL_IN(mirab_answers_new(none, 0, &error, NULL), "out");
    NULL_IN(mirab_answers_set_body(NULL, "json", &error), "answers");
    NULL_IN(mirab_answers_set_body(answers, NULL, &error), "body");
    NULL_IN(mirab_answers_set_policy_name(NULL, "n", &error), "answers");
    NULL_IN(mirab_answers_set_policy_name(answers, NULL, &error), "name");
    NULL_IN(mirab_answers_set_partition_salt(NULL, bytes("0123456789abcdef"), 16, &error), "answers");
    NULL_IN(mirab_answers_set_partition_salt(answers, NULL, 16, &error), "salt");
    NULL_IN(mirab_answers_set_partitions(NULL, true, &error), "answers");
    NULL_IN(mirab_answers_set_max_hold(NULL, 1, &error), "answers");
    ALL_NULL_IN_ANSWER(mirab_limiter_acquire_with_answer);
    ALL_NULL_IN_ANSWER(mirab_limiter_peek_with_answer);
    CHECK_OK(mirab_limiter_peek_with_answer(limiter, bytes("k"), 1, 9, answers, &error, &decision, &answer));
    NULL_IN(mirab_answer_status(NULL, &error, &count), "answer");
    NULL_IN(mirab_answer_status(answer, &error, NULL), "out");
    NULL_IN(mirab_answer_field(NULL, 0, &error, &allowed, &name, &value), "answer");
    NULL_IN(mirab_answer_field(answer, 0, &error, NULL, &name, &value), "out");
    NULL_IN(mirab_answer_field(answer, 0, &error, &allowed, NULL, &value), "out_name");
    NULL_IN(mirab_answer_field(answer, 0, &error, &allowed, &name, NULL), "out_value");
    NULL_IN(mirab_answer_body(NULL, &error, &body), "answer");
    NULL_IN(mirab_answer_body(answer, &error, NULL), "out");
    CHECK(body == NULL);
    mirab_answer_free(answer);
    mirab_answers_free(answers);
    /* Nothing was taken by all this. */
    CHECK_OK(mirab_limiter_peek(limiter, bytes("k"), 1, 1, &error, &decision));
    CHECK_NUMBER(decision.remaining, 2);
}

/* Without an error to write to, the code alone tells. */
static void no_error(void) {
    CHECK(mirab_limit_parse("nonsense", NULL, &no_limit) == MIRAB_INVALID_LIMIT);
    CHECK(mirab_limiter_acquire(NULL, NULL, 9, -1, NULL, NULL) == MIRAB_NULL_POINTER);
    CHECK(mirab_limiter_acquire(limiter, bytes("k"), 1, 1, NULL, &decision) == MIRAB_OK);
}

int main(void) {
    SCENE(limits());
    SCENE(clocks());
    SCENE(all_options());
    SCENE(limiters());
    SCENE(all_clients());
    SCENE(all_answers());
    SCENE(no_error());
    CHECK(!*line && !health.layout && !no_limit && !no_limiter && !no_options && !no_clock && !name && !allowed && !ended && !count);
    CHECK(!value && !no_clients && !no_answers && !no_answer);

    mirab_limiter_free(limiter);
    mirab_options_free(options);
    mirab_manual_clock_free(clock);
    mirab_limit_free(limit);
    mirab_limiter_free(NULL);
    mirab_options_free(NULL);
    mirab_manual_clock_free(NULL);
    mirab_limit_free(NULL);
    mirab_clients_free(NULL);
    mirab_answers_free(NULL);
    mirab_answer_free(NULL);
    return tell(0);
}
