/* Stores that can't be: a bad URI is refused at once, an absent server at the decision. */
#include "check.h"

static mirab_error error;

static void bad_uri(const char *uri, const char *part) {
    mirab_limiter *limiter = NULL;
    CHECK_FAILS(mirab_limiter_new("5/minute", uri, NULL, &error, &limiter), MIRAB_INVALID_URI, part);
    CHECK(limiter == NULL);
}

static void bad_choice(const char *choice, mirab_result expected) {
    mirab_options *options;
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_FAILS(mirab_options_set_on_store_failure(options, choice, &error), expected, choice);
    mirab_options_free(options);
}

static void nobody_there(void) {
    mirab_limiter *limiter;
    mirab_decision decision = {.allowed = false};
    bool allowed = false;
    const char *uri = "redis://user:hunter2@127.0.0.1:1?timeout_ms=500";
    CHECK_OK(mirab_limiter_new("5/minute", uri, NULL, &error, &limiter));
    CHECK_FAILS(mirab_limiter_acquire(limiter, bytes("k"), 1, 1, &error, &decision), MIRAB_STORE_UNAVAILABLE,
                "127.0.0.1:1");
    CHECK(strstr(error.message, "hunter2") == NULL);
    CHECK_FAILS(mirab_limiter_allow(limiter, bytes("k"), 1, 1, &error, &allowed), MIRAB_STORE_UNAVAILABLE,
                "127.0.0.1:1");
    CHECK(!decision.allowed && !allowed);
    mirab_limiter_free(limiter);
}

int main(void) {
    SCENE(bad_uri("", ""));
    SCENE(bad_uri("floppy:", "floppy"));
    SCENE(bad_uri("redis://127.0.0.1:6379?colour=red", "colour"));
    SCENE(bad_uri("redis://127.0.0.1:6379?timeout_ms=soon", "soon"));
    SCENE(bad_choice("shrug", MIRAB_INVALID_ARGUMENT));
    SCENE(bad_choice("local", MIRAB_UNSUPPORTED));
    SCENE(nobody_there());
    return tell(0);
}
