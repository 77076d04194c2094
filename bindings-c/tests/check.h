/* What every test program needs: checks that say what was wrong, and where. A program runs its
 * scenes one by one, stops at the first that fails, and tells how many passed. PROGRAM, its name,
 * comes from the Makefile. */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <mirab.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned scenes_passed;

#define SCENE(call)                                                                                          \
    do {                                                                                                     \
        call;                                                                                                \
        scenes_passed++;                                                                                     \
    } while (0)

static inline int tell(unsigned failed) {
    printf("%s: %u passed, %u failed\n", PROGRAM, scenes_passed, failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define FAIL(...)                                                                                            \
    do {                                                                                                     \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                                      \
        fprintf(stderr, __VA_ARGS__);                                                                        \
        fprintf(stderr, "\n");                                                                               \
        exit(tell(1));                                                                                       \
    } while (0)

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) FAIL("not so: %s", #condition);                                                    \
    } while (0)

#define CHECK_NUMBER(found, expected)                                                                        \
    do {                                                                                                     \
        uint64_t found_ = (found), expected_ = (expected);                                                   \
        if (found_ != expected_) FAIL("%s is %" PRIu64 ", not %" PRIu64, #found, found_, expected_);         \
    } while (0)

#define CHECK_TEXT(found, expected)                                                                          \
    do {                                                                                                     \
        if (strcmp((found), (expected)) != 0) FAIL("%s is \"%s\", not \"%s\"", #found, (found), (expected)); \
    } while (0)

/* The call works; `error` is the one that it was given. */
#define CHECK_OK(call)                                                                                       \
    do {                                                                                                     \
        mirab_result result_ = (call);                                                                       \
        if (result_ != MIRAB_OK) FAIL("%s: %s: %s", #call, mirab_result_name(result_), error.message);       \
    } while (0)

/* The call fails with this code, and the error says the same and names `part`. */
#define CHECK_FAILS(call, expected, part)                                                                    \
    do {                                                                                                     \
        memset(&error, 0x55, sizeof error);                                                                  \
        mirab_result result_ = (call);                                                                       \
        if (result_ != (expected)) FAIL("%s gave %s, not %s", #call, mirab_result_name(result_), #expected); \
        CHECK(error.code == result_);                                                                        \
        CHECK(memchr(error.message, 0, sizeof error.message) != NULL);                                       \
        if (strstr(error.message, (part)) == NULL)                                                           \
            FAIL("%s: \"%s\" doesn't say \"%s\"", #call, error.message, (part));                             \
    } while (0)

static inline const uint8_t *bytes(const char *text) { return (const uint8_t *)text; }

/* A limiter that does this when its store fails, and goes by this clock or, without one, by the store's. */
static inline mirab_limiter *limiter_that(const char *on_store_failure, const mirab_manual_clock *clock,
                                          const char *limits, const char *store) {
    mirab_error error;
    mirab_options *options;
    mirab_limiter *limiter;
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_OK(mirab_options_set_on_store_failure(options, on_store_failure, &error));
    if (clock != NULL) CHECK_OK(mirab_options_set_manual_clock(options, clock, &error));
    CHECK_OK(mirab_limiter_new(limits, store, options, &error, &limiter));
    mirab_options_free(options);
    return limiter;
}

/* A limiter of which every answer is its store's: where that fails, so does the call. */
static inline mirab_limiter *limiter_on(const char *limits, const char *store) {
    return limiter_that("raise", NULL, limits, store);
}

/* As that, by this clock. */
static inline mirab_limiter *limiter_by(const mirab_manual_clock *clock, const char *limits, const char *store) {
    return limiter_that("raise", clock, limits, store);
}

/* A store of the Redis that the tests are given, with keys that no other run shares. */
static inline const char *test_redis(void) {
    static char uri[512];
    const char *server = getenv("MIRAB_TEST_REDIS");
    if (server == NULL || *server == '\0')
        FAIL("MIRAB_TEST_REDIS must name a Redis, such as redis://127.0.0.1:6379");
    snprintf(uri, sizeof uri, "%s?timeout_ms=5000&prefix=c-" PROGRAM "-%ld", server, (long)getpid());
    return uri;
}

/* Where the file of a store in shared memory is, by the name in its URI. */
static inline const char *shm_path(const char *uri) {
    static char path[256];
    snprintf(path, sizeof path, "/dev/shm/mirab-%ld-1-%.*s", (long)getuid(), (int)strcspn(uri + 4, "?"), uri + 4);
    return path;
}

static char shm_uris[8][128];
static size_t shm_made;

static inline void shm_remove(void) {
    for (size_t i = 0; i < shm_made; i++) unlink(shm_path(shm_uris[i]));
}

/* A store in shared memory that nobody else names, of these parameters; its file is removed when the program ends. */
static inline const char *test_shm_of(const char *parameters) {
    const char *run = getenv("MIRAB_TEST_RUN");
    if (shm_made == sizeof shm_uris / sizeof shm_uris[0]) FAIL("more stores in shared memory than a test may have");
    if (shm_made == 0 && atexit(shm_remove) != 0) FAIL("atexit");
    char *uri = shm_uris[shm_made];
    snprintf(uri, sizeof shm_uris[0], "shm:c-%s-" PROGRAM "-%ld-%zu?%s", run == NULL ? "x" : run, (long)getpid(), shm_made,
             parameters);
    shm_made++;
    return uri;
}

/* A slow moment must not look like a stopped process. */
static inline const char *test_shm(void) { return test_shm_of("max_keys=1000&timeout_ms=5000"); }

#endif
