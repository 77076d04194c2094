/*
 * Calls through the header, repeated so often as is asked: scripts/instructions.py counts their instructions.
 *
 *     instructions               lists the scenes
 *     instructions SCENE TIMES   makes SCENE ready and repeats it so often
 */
#include <mirab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limits of core/benches/scenes/limiter.rs: what never refuses, and what refuses all but the first. */
#define HOT "4000000000 per 20 days"
#define REFUSED "1/hour"

static const uint8_t KEY[] = "user:00000012345";
enum { KEY_LEN = sizeof KEY - 1 };

static mirab_error error;

static void check(mirab_result result) {
    if (result == MIRAB_OK) return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

static bool allow(const mirab_limiter *limiter) {
    bool allowed;
    check(mirab_limiter_allow(limiter, KEY, KEY_LEN, 1, &error, &allowed));
    return allowed;
}

static bool acquire(const mirab_limiter *limiter) {
    mirab_decision decision;
    check(mirab_limiter_acquire(limiter, KEY, KEY_LEN, 1, &error, &decision));
    return decision.allowed;
}

static const struct scene {
    const char *name, *limits;
    bool (*admits)(const mirab_limiter *limiter);
    bool admitted;
} SCENES[] = {
    {"c/allow_hot", HOT, allow, true},
    {"c/acquire_hot", HOT, acquire, true},
    {"c/allow_refused", REFUSED, allow, false},
    {"c/acquire_refused", REFUSED, acquire, false},
};
enum { SCENE_COUNT = sizeof SCENES / sizeof *SCENES };

/* What is counted, found by its name: not what makes a scene ready. */
__attribute__((noinline)) static bool repeated(const struct scene *scene, const mirab_limiter *limiter, long times) {
    bool went_well = true;
    for (long i = 0; i < times; i++) went_well &= scene->admits(limiter) == scene->admitted;
    return went_well;
}

static int repeat(const struct scene *scene, long times) {
    mirab_limiter *limiter;
    check(mirab_limiter_new(scene->limits, "memory:", NULL, &error, &limiter));
    bool went_well = scene->admits(limiter); /* the first is admitted in every scene */
    went_well &= repeated(scene, limiter, times);
    mirab_limiter_free(limiter);
    if (!went_well) fprintf(stderr, "%s does not go as it should\n", scene->name);
    return !went_well;
}

int main(int count, char **arguments) {
    for (size_t i = 0; i < SCENE_COUNT; i++) {
        if (count == 1)
            puts(SCENES[i].name);
        else if (count == 3 && strcmp(SCENES[i].name, arguments[1]) == 0)
            return repeat(&SCENES[i], strtol(arguments[2], NULL, 10));
    }
    if (count == 1) return 0;
    fprintf(stderr, "instructions [SCENE TIMES]: without, it lists the scenes\n");
    return 1;
}
