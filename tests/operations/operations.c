/* Plays a scenario of every operation: operations SCENARIO STORE */
#include <inttypes.h>
#include <mirab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 32 };

struct scene {
    mirab_limiter *limiter;
    mirab_manual_clock *clock;
    mirab_decision taken[26]; /* by the letter of its name, with its key */
    char keys[26][64];
    mirab_error error;
};

static const uint8_t *bytes(const char *text) { return (const uint8_t *)text; }

static void tell(struct scene *s, const mirab_decision *d) {
    const char *name = NULL;
    if (mirab_limiter_limit_name(s->limiter, d->limit_index, &s->error, &name) != MIRAB_OK)
        name = "?";
    printf("%s by %s: %" PRIu64 " of %" PRIu64 " used, %" PRIu64 " left, retry ",
           d->allowed ? "admitted" : d->never ? "never" : "refused", name, d->used, d->limit, d->remaining);
    if (d->retry_after_us == MIRAB_NO_RETRY)
        printf("-");
    else
        printf("%" PRIu64, d->retry_after_us);
    printf(", reset %" PRIu64 ", delay %" PRIu64, d->reset_after_us, d->delay_us);
}

static mirab_result many(struct scene *s, char **words, size_t count) {
    const uint8_t *keys[WORDS / 2];
    size_t lengths[WORDS / 2];
    int64_t costs[WORDS / 2];
    mirab_decision decisions[WORDS / 2];
    size_t items = count / 2;
    for (size_t i = 0; i < items; i++) {
        keys[i] = bytes(words[2 * i]);
        lengths[i] = strlen(words[2 * i]);
        costs[i] = atoll(words[2 * i + 1]);
    }
    mirab_result result = mirab_limiter_acquire_many(s->limiter, keys, lengths, costs, items, &s->error, decisions);
    for (size_t i = 0; result == MIRAB_OK && i < items; i++) {
        if (i > 0)
            printf(" | ");
        tell(s, &decisions[i]);
    }
    return result;
}

static bool is(const char *word, const char *name) { return strcmp(word, name) == 0; }

/* The steps whose answer is a decision. */
static mirab_result decide(struct scene *s, char **w) {
    mirab_decision decision;
    uint64_t now = 0;
    mirab_result result;
    if (is(w[0], "acquire")) {
        int name = w[1][0] - 'a';
        snprintf(s->keys[name], sizeof s->keys[name], "%s", w[2]);
        result = mirab_limiter_acquire(s->limiter, bytes(w[2]), strlen(w[2]), atoll(w[3]), &s->error, &decision);
        if (result == MIRAB_OK)
            s->taken[name] = decision;
    } else if (is(w[0], "peek")) {
        result = mirab_limiter_peek(s->limiter, bytes(w[1]), strlen(w[1]), atoll(w[2]), &s->error, &decision);
    } else {
        result = mirab_limiter_wait(s->limiter, bytes(w[1]), strlen(w[1]), atoll(w[2]), atoll(w[3]), &s->error,
                                    &decision);
        if (result == MIRAB_OK)
            result = mirab_manual_clock_now_us(s->clock, &s->error, &now);
    }
    if (result == MIRAB_OK) {
        tell(s, &decision);
        if (is(w[0], "wait"))
            printf(", at %" PRIu64, now);
    }
    return result;
}

/* The steps that settle an earlier decision. */
static mirab_result settle(struct scene *s, char **w) {
    int name = w[1][0] - 'a';
    const uint8_t *key = bytes(s->keys[name]);
    size_t length = strlen(s->keys[name]);
    uint64_t units = 0;
    mirab_result result;
    if (is(w[0], "commit")) {
        result = mirab_limiter_commit(s->limiter, key, length, &s->taken[name], atoll(w[2]), &s->error);
        if (result == MIRAB_OK)
            printf("done");
        return result;
    }
    if (is(w[0], "refund"))
        result = mirab_limiter_refund(s->limiter, key, length, &s->taken[name], &s->error, &units);
    else
        result = mirab_limiter_release(s->limiter, key, length, &s->taken[name], &s->error, &units);
    if (result == MIRAB_OK)
        printf("%" PRIu64, units);
    return result;
}

/* The steps that are only done. */
static mirab_result manage(struct scene *s, char **w) {
    mirab_result result = MIRAB_INTERNAL;
    if (is(w[0], "at"))
        result = mirab_manual_clock_set_us(s->clock, atoll(w[1]), &s->error);
    else if (is(w[0], "block"))
        result = mirab_limiter_block(s->limiter, bytes(w[1]), strlen(w[1]), atoll(w[2]), &s->error);
    else if (is(w[0], "unblock"))
        result = mirab_limiter_unblock(s->limiter, bytes(w[1]), strlen(w[1]), &s->error);
    else if (is(w[0], "reset"))
        result = mirab_limiter_reset(s->limiter, bytes(w[1]), strlen(w[1]), &s->error);
    else if (is(w[0], "close"))
        result = mirab_limiter_close(s->limiter, &s->error);
    if (result == MIRAB_OK)
        printf("done");
    return result;
}

static mirab_result play(struct scene *s, char **w, size_t count) {
    mirab_result result;
    if (is(w[0], "acquire") || is(w[0], "peek") || is(w[0], "wait"))
        return decide(s, w);
    if (is(w[0], "refund") || is(w[0], "commit") || is(w[0], "release"))
        return settle(s, w);
    if (is(w[0], "many"))
        return many(s, w + 1, count - 1);
    if (is(w[0], "allow")) {
        bool allowed = false;
        result = mirab_limiter_allow(s->limiter, bytes(w[1]), strlen(w[1]), atoll(w[2]), &s->error, &allowed);
        if (result == MIRAB_OK)
            printf("%s", allowed ? "yes" : "no");
        return result;
    }
    if (is(w[0], "stats")) {
        mirab_stats t;
        result = mirab_limiter_stats(s->limiter, &s->error, &t);
        if (result == MIRAB_OK)
            printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, t.allowed, t.refused,
                   t.never, t.blocked, t.errors, t.refunded);
        return result;
    }
    return manage(s, w);
}

static void end(struct scene *s) {
    mirab_limiter_free(s->limiter);
    mirab_manual_clock_free(s->clock);
    memset(s, 0, sizeof *s);
}

static bool begin(struct scene *s, const char *limits, const char *store) {
    mirab_options *options = NULL;
    end(s);
    bool made = mirab_manual_clock_new(0, &s->error, &s->clock) == MIRAB_OK &&
                mirab_options_new(&s->error, &options) == MIRAB_OK &&
                mirab_options_set_manual_clock(options, s->clock, &s->error) == MIRAB_OK &&
                mirab_limiter_new(limits, store, options, &s->error, &s->limiter) == MIRAB_OK;
    mirab_options_free(options);
    return made;
}

int main(int argc, char **argv) {
    static struct scene scene;
    char line[256], words_of[256], *words[WORDS];
    FILE *scenario = argc == 3 ? fopen(argv[1], "r") : NULL;
    if (scenario == NULL)
        return 2;
    while (fgets(line, sizeof line, scenario) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        if (strncmp(line, "limiter ", 8) == 0) {
            if (!begin(&scene, line + 8, argv[2])) {
                fprintf(stderr, "%s\n", scene.error.message);
                return 1;
            }
            printf("%s\n", line);
            continue;
        }
        size_t count = 0;
        strcpy(words_of, line);
        for (char *word = strtok(words_of, " "); word != NULL && count < WORDS; word = strtok(NULL, " "))
            words[count++] = word;
        printf("%s -> ", line);
        mirab_result result = play(&scene, words, count);
        if (result != MIRAB_OK)
            printf("error %s", mirab_result_name(result));
        printf("\n");
    }
    end(&scene);
    fclose(scenario);
    return 0;
}
