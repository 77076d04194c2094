/*
 * Plays published cases through mirab.h: each file on `memory:`, in a file of shared memory that is removed in the
 * end, and on the Redis of MIRAB_TEST_REDIS, by a clock that is moved by hand, with every field of every answer
 * compared.
 *
 *     vectors FILE.json...
 */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <mirab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static mirab_error error;
static const char *file, *store; /* what is being played, for messages */
static int step;

static char shared[64]; /* the file of shared memory */

static void die(const char *what, const char *why) {
    if (shared[0] != '\0') unlink(shared);
    fprintf(stderr, "%s on %s, step %d: %s: %s\n", file, store, step, what, why);
    exit(EXIT_FAILURE);
}

static void ok(mirab_result result, const char *what) {
    if (result != MIRAB_OK) die(what, error.message);
}

static void same(const char *field, uint64_t found, uint64_t expected) {
    char why[96];
    if (found == expected) return;
    snprintf(why, sizeof why, "%" PRIu64 ", and the case says %" PRIu64, found, expected);
    die(field, why);
}

static cJSON *load(const char *path) {
    static char text[1 << 20];
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) die("open", "can't be read");
    const size_t length = fread(text, 1, sizeof text - 1, stream);
    if (ferror(stream) || !feof(stream)) die("read", "too long, or can't be read");
    fclose(stream);
    cJSON *json = cJSON_ParseWithLength(text, length);
    if (json == NULL) die("parse", "not JSON");
    return json;
}

/* Doubles hold whole numbers up to 2^53, which is more than any time or count of a case. */
static int64_t number(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!cJSON_IsNumber(item)) die(name, "not a number");
    return (int64_t)item->valuedouble;
}

static int64_t number_or(const cJSON *object, const char *name, int64_t otherwise) {
    return cJSON_HasObjectItem(object, name) ? number(object, name) : otherwise;
}

static const char *text(const cJSON *object, const char *name) {
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return value == NULL ? "" : value;
}

static mirab_limit *limit_of(const cJSON *json) {
    mirab_limit *limit = NULL;
    const char *algorithm = text(json, "algorithm");
    const int64_t count = number(json, "limit"), per_us = number(json, "period_us");
    if (strcmp(algorithm, "token_bucket") == 0) {
        ok(mirab_limit_token_bucket(count, per_us, &error, &limit), "token_bucket");
        ok(mirab_limit_set_capacity(limit, number(json, "capacity"), &error), "capacity");
    } else if (strcmp(algorithm, "leaky_bucket") == 0) {
        ok(mirab_limit_leaky_bucket(count, per_us, number(json, "queue"), &error, &limit), "leaky_bucket");
    } else if (strcmp(algorithm, "sliding_window") == 0) {
        ok(mirab_limit_sliding_window(count, per_us, &error, &limit), "sliding_window");
    } else if (strcmp(algorithm, "sliding_log") == 0) {
        const int64_t buckets = number_or(json, "buckets", 0);
        ok(mirab_limit_sliding_log(count, per_us, buckets, &error, &limit), "sliding_log");
    } else if (strcmp(algorithm, "fixed_window") == 0) {
        const bool first = strcmp(text(json, "anchor"), "first") == 0;
        const mirab_anchor anchor = first ? MIRAB_ANCHOR_FIRST : MIRAB_ANCHOR_CLOCK;
        ok(mirab_limit_fixed_window(count, per_us, anchor, &error, &limit), "fixed_window");
    } else {
        die("algorithm", algorithm);
    }
    return limit;
}

/* The largest cost that can pass: a queue has one place more, for the one being served. */
static uint64_t capacity_of(const cJSON *json) {
    if (cJSON_HasObjectItem(json, "queue")) return (uint64_t)number(json, "queue") + 1;
    return (uint64_t)number_or(json, "capacity", number(json, "limit"));
}

static void compare(const cJSON *expected, const mirab_decision *decision, uint64_t capacity) {
    const uint64_t remaining = (uint64_t)number(expected, "remaining");
    const cJSON *retry = cJSON_GetObjectItemCaseSensitive(expected, "retry_after_us");
    const bool never = cJSON_IsString(retry) && strcmp(retry->valuestring, "never") == 0;
    const bool allowed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(expected, "allowed"));
    const int64_t wait_us = never ? 0 : number(expected, "retry_after_us");

    same("allowed", decision->allowed, allowed);
    same("never", decision->never, never);
    same("degraded", decision->degraded, false);
    same("limit", decision->limit, capacity);
    same("used", decision->used, capacity - remaining);
    same("remaining", decision->remaining, remaining);
    same("retry_after_us", decision->retry_after_us, wait_us == 0 ? MIRAB_NO_RETRY : (uint64_t)wait_us);
    same("reset_after_us", decision->reset_after_us, (uint64_t)number(expected, "reset_after_us"));
    same("delay_us", decision->delay_us, (uint64_t)number_or(expected, "delay_us", 0));
    same("limit_index", decision->limit_index, 0);
}

static void play(const cJSON *json) {
    const cJSON *numbers = cJSON_GetObjectItemCaseSensitive(json, "limit"), *one;
    const uint64_t capacity = capacity_of(numbers);
    const uint8_t *key = (const uint8_t *)text(json, "name");
    const size_t key_len = strlen(text(json, "name"));
    mirab_limit *limit = limit_of(numbers);
    mirab_manual_clock *clock;
    mirab_options *options;
    mirab_limiter *limiter;

    ok(mirab_manual_clock_new(0, &error, &clock), "clock");
    ok(mirab_options_new(&error, &options), "options");
    ok(mirab_options_set_manual_clock(options, clock, &error), "options");
    const mirab_limit *limits[] = {limit};
    ok(mirab_limiter_from_limits(limits, 1, store, options, &error, &limiter), "limiter");

    step = 0;
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(json, "steps")) {
        mirab_decision decision;
        step++;
        ok(mirab_manual_clock_set_us(clock, number(one, "at_us"), &error), "at_us");
        ok(mirab_limiter_acquire(limiter, key, key_len, number(one, "cost"), &error, &decision), "acquire");
        compare(one, &decision, capacity);
    }
    if (step == 0) die("steps", "there are none");

    mirab_limiter_free(limiter);
    mirab_options_free(options);
    mirab_manual_clock_free(clock);
    mirab_limit_free(limit);
}

int main(int argc, char **argv) {
    char redis[512], shm[128];
    const char *server = getenv("MIRAB_TEST_REDIS");
    if (argc < 2 || server == NULL) {
        fprintf(stderr, "usage: MIRAB_TEST_REDIS=redis://HOST:PORT vectors FILE.json...\n");
        return EXIT_FAILURE;
    }
    /* No other run's keys: state under a manual clock outlives the run. */
    snprintf(redis, sizeof redis, "%s?timeout_ms=5000&prefix=vectors-c-%ld", server, (long)getpid());
    snprintf(shared, sizeof shared, "/dev/shm/mirab-vectors-%ld", (long)getpid());
    snprintf(shm, sizeof shm, "shm://%s?max_keys=256&timeout_ms=5000", shared);
    const char *stores[] = {"memory:", shm, redis};
    const int count = sizeof stores / sizeof *stores;
    for (int i = 1; i < argc; i++) {
        for (int at = 0; at < count; at++) {
            file = argv[i];
            store = stores[at];
            cJSON *json = load(file);
            play(json);
            cJSON_Delete(json);
        }
    }
    if (unlink(shared) != 0) die("the file of shared memory", "can't be removed");
    printf("vectors: %d passed, 0 failed\n", count * (argc - 1));
    return EXIT_SUCCESS;
}
