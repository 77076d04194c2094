/*
 * Plays the tables of this folder through mirab.h, byte for byte: who is asking, and what he is told.
 *
 *     http ADDRESSES.json ANSWERS.json
 */
#include <cjson/cJSON.h>
#include <mirab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXTS = 256 };

static mirab_error error;
static const char *row; /* what is being played, for messages */
static unsigned cases;

static void die(const char *what, const char *why) {
    fprintf(stderr, "%s, case %u: %s: %s\n", row, cases, what, why);
    exit(EXIT_FAILURE);
}

static void ok(mirab_result result, const char *what) {
    if (result != MIRAB_OK) die(what, error.message);
}

/* Two texts, either of which may be NULL, for none. */
static void same(const char *what, const char *found, const char *expected) {
    char why[2048];
    if (found == expected || (found != NULL && expected != NULL && strcmp(found, expected) == 0)) return;
    snprintf(why, sizeof why, "%s, and the table says %s", found ? found : "none", expected ? expected : "none");
    die(what, why);
}

static cJSON *load(const char *path) {
    static char text[1 << 20];
    row = path;
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) die("open", "can't be read");
    const size_t length = fread(text, 1, sizeof text - 1, stream);
    if (ferror(stream) || !feof(stream)) die("read", "too long, or can't be read");
    fclose(stream);
    text[length] = '\0';
    /* A text of C ends at NUL: another control character is as little of an address. */
    for (char *nul = text; (nul = strstr(nul, "\\u0000")) != NULL;) memcpy(nul, "\\u0001", 6);
    cJSON *json = cJSON_ParseWithLength(text, length);
    if (json == NULL) die("parse", "not JSON");
    return json;
}

static const cJSON *item(const cJSON *object, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* NULL where there is none. */
static const char *text(const cJSON *object, const char *name) { return cJSON_GetStringValue(item(object, name)); }

/* The texts of an array, with the last `repeat` times. */
static size_t texts(const cJSON *array, int repeat, const char *found[MOST_TEXTS]) {
    size_t count = 0;
    const cJSON *one;
    cJSON_ArrayForEach(one, array) found[count++] = one->valuestring;
    if (count + (size_t)repeat > MOST_TEXTS) die("texts", "too many");
    for (; count > 0 && repeat > 1; repeat--, count++) found[count] = found[count - 1];
    return count;
}

static void group(const cJSON *json) {
    const char *found[MOST_TEXTS], *header = text(json, "field");
    const cJSON *trusted = item(json, "trusted"), *prefix = item(json, "ipv6_prefix"), *one;
    const int repeat = item(json, "repeat") == NULL ? 1 : item(json, "repeat")->valueint;
    mirab_clients *clients;
    row = text(json, "why");

    ok(mirab_clients_new(&error, &clients), "clients");
    if (cJSON_IsNumber(trusted))
        ok(mirab_clients_trust_hops(clients, trusted->valueint, &error), "hops");
    else
        ok(mirab_clients_trust(clients, found, texts(trusted, 1, found), &error), "trusted");
    if (header != NULL) ok(mirab_clients_set_header(clients, header, &error), "field");
    if (prefix != NULL) ok(mirab_clients_set_ipv6_prefix(clients, prefix->valueint, &error), "ipv6_prefix");

    cJSON_ArrayForEach(one, item(json, "cases")) {
        char key[MIRAB_CLIENT_KEY_SIZE];
        bool known;
        const char *peer = cJSON_GetStringValue(cJSON_GetArrayItem(one, 0));
        const size_t count = texts(cJSON_GetArrayItem(one, 1), repeat, found);
        cases++;
        ok(mirab_clients_key(clients, peer, found, count, &error, &known, key, sizeof key), "key");
        same("client", known ? key : NULL, cJSON_GetStringValue(cJSON_GetArrayItem(one, 2)));
        if (!known) same("key", key, "");
    }
    mirab_clients_free(clients);
}

static mirab_limiter *limiter_of(const char *limits) {
    mirab_manual_clock *clock;
    mirab_options *options;
    mirab_limiter *limiter;
    ok(mirab_manual_clock_new(1000500000, &error, &clock), "clock");
    ok(mirab_options_new(&error, &options), "options");
    ok(mirab_options_set_manual_clock(options, clock, &error), "options");
    ok(mirab_limiter_new(limits, "memory:", options, &error, &limiter), "limits");
    mirab_options_free(options);
    mirab_manual_clock_free(clock);
    return limiter;
}

/* The key of the limiter is the one whose partition is told. */
static mirab_answers *answers_of(const cJSON *json) {
    const char *families[MOST_TEXTS];
    const size_t count = texts(item(json, "families"), 1, families);
    const cJSON *max_hold = item(json, "max_hold");
    mirab_answers *answers;
    ok(mirab_answers_new(families, count, &error, &answers), "families");
    ok(mirab_answers_set_partition_salt(answers, (const uint8_t *)"0123456789abcdef", 16, &error), "salt");
    ok(mirab_answers_set_partitions(answers, text(json, "partition_key") != NULL, &error), "partitions");
    if (text(json, "body") != NULL) ok(mirab_answers_set_body(answers, text(json, "body"), &error), "body");
    if (text(json, "policy_name") != NULL)
        ok(mirab_answers_set_policy_name(answers, text(json, "policy_name"), &error), "policy_name");
    if (max_hold != NULL)
        ok(mirab_answers_set_max_hold(answers, INT64_C(1000000) * max_hold->valueint, &error), "max_hold");
    return answers;
}

static void compare(const mirab_answer *answer, const cJSON *json) {
    const char *name, *value, *body;
    const cJSON *one;
    uint32_t status, index = 0;
    bool is_there;
    char shown[16];
    cJSON_ArrayForEach(one, item(json, "fields")) {
        ok(mirab_answer_field(answer, index++, &error, &is_there, &name, &value), "field");
        if (!is_there) die("field", "there are more in the table");
        same("field", name, cJSON_GetStringValue(cJSON_GetArrayItem(one, 0)));
        same(name, value, cJSON_GetStringValue(cJSON_GetArrayItem(one, 1)));
    }
    ok(mirab_answer_field(answer, index, &error, &is_there, &name, &value), "field");
    if (is_there) die("field", "there are fewer in the table");
    ok(mirab_answer_status(answer, &error, &status), "status");
    snprintf(shown, sizeof shown, "%d", item(json, "status")->valueint);
    if ((int)status != item(json, "status")->valueint) die("status is not", shown);
    ok(mirab_answer_body(answer, &error, &body), "body");
    same("body", body, text(json, "text"));
}

static void told(const cJSON *json) {
    const char *key = text(json, "partition_key") == NULL ? "k" : text(json, "partition_key");
    mirab_limiter *limiter = limiter_of(text(json, "limits"));
    mirab_answers *answers = answers_of(json);
    mirab_answer *answer = NULL;
    const cJSON *cost;
    row = text(json, "why");
    cases++;
    cJSON_ArrayForEach(cost, item(json, "costs")) {
        mirab_decision decision;
        mirab_answer_free(answer);
        ok(mirab_limiter_acquire_with_answer(limiter, (const uint8_t *)key, strlen(key), cost->valueint, answers,
                                             &error, &decision, &answer),
           "acquire");
    }
    /* It stands alone. */
    mirab_limiter_free(limiter);
    mirab_answers_free(answers);
    compare(answer, json);
    mirab_answer_free(answer);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: http ADDRESSES.json ANSWERS.json\n");
        return EXIT_FAILURE;
    }
    cJSON *addresses = load(argv[1]), *one;
    cJSON_ArrayForEach(one, addresses) group(one);
    if (cases < 150) die("cases", "there are too few");
    cJSON *answers = load(argv[2]);
    const unsigned before = cases;
    cJSON_ArrayForEach(one, answers) told(one);
    if (cases - before < 70) die("cases", "there are too few");
    cJSON_Delete(addresses);
    cJSON_Delete(answers);
    printf("http: %u passed, 0 failed\n", cases);
    return EXIT_SUCCESS;
}
