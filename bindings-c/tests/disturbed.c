/* What happens to shared memory while it is used: a process is stopped while it decides, for which the others wait for as
 * long as was said, and then it is done as was chosen; and the file is removed. */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"

static mirab_error error;
static pid_t child;

#define MANY "fixed_window: 4000000000/365 days from first"

/* The deadline, and how much longer it may take on a busy machine. */
enum { DEADLINE_US = 50000, SLOWER = 10 };

static int64_t real_us(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static void pause_us(long us) {
    const struct timespec time = {.tv_nsec = us * 1000};
    nanosleep(&time, NULL);
}

static void end_child(void) {
    if (child > 0 && kill(child, SIGKILL) == 0) waitpid(child, NULL, 0);
    child = 0;
}

/* A child that asks for "k" without a pause. */
static void start_child(const char *store) {
    int started[2];
    char byte = 'x';
    CHECK(pipe(started) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        bool allowed;
        mirab_limiter *limiter;
        if (mirab_limiter_new(MANY, store, NULL, &error, &limiter) != MIRAB_OK) _exit(1);
        for (bool is_told = false;; is_told = true) {
            if (mirab_limiter_allow(limiter, bytes("k"), 1, 1, &error, &allowed) != MIRAB_OK) _exit(1);
            if (!is_told && write(started[1], &byte, 1) != 1) _exit(1);
        }
    }
    CHECK(close(started[1]) == 0 && read(started[0], &byte, 1) == 1 && close(started[0]) == 0);
}

/* Asks until the child held the key's part when it was stopped; what the call said then. */
static mirab_result beside_one_that_is_stopped(const mirab_limiter *limiter, const char *store, mirab_decision *decision) {
    unsigned seed = 1;
    start_child(store);
    for (int tries = 0; tries < 20000; tries++) {
        seed = seed * 1103515245 + 12345;
        pause_us((long)(seed >> 16) % 1000);
        CHECK(kill(child, SIGSTOP) == 0);
        int status;
        CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        const int64_t begun = real_us();
        const mirab_result result = mirab_limiter_acquire(limiter, bytes("k"), 1, 1, &error, decision);
        const int64_t took = real_us() - begun;
        CHECK(kill(child, SIGCONT) == 0);
        if (result == MIRAB_OK && !decision->degraded) continue;
        CHECK(took >= DEADLINE_US && took < SLOWER * DEADLINE_US);
        end_child();
        return result;
    }
    FAIL("it never held anything when it was stopped");
}

/* The next line of news; an empty one where there is none. */
static const char *next_line(const mirab_limiter *limiter) {
    static char line[MIRAB_NEWS_SIZE];
    bool told = false;
    CHECK_OK(mirab_limiter_take_news(limiter, &error, &told, line, sizeof line));
    return told ? line : "";
}

static void raised(void) {
    const char *store = test_shm_of("max_keys=64&timeout_ms=50");
    mirab_limiter *limiter = limiter_on(MANY, store);
    mirab_decision decision;
    mirab_stats stats;
    CHECK_FAILS(beside_one_that_is_stopped(limiter, store, &decision), MIRAB_STORE_TIMEOUT, "stopped");
    CHECK_OK(mirab_limiter_stats(limiter, &error, &stats));
    CHECK(stats.errors == 1 && stats.degraded == 0);
    CHECK(strstr(next_line(limiter), "does not decide about some keys") != NULL);
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, 1, &error, &decision));
    CHECK(strstr(next_line(limiter), "decides again") != NULL);
    mirab_limiter_free(limiter);
}

static mirab_decision degraded(const char *choice, int64_t instances) {
    const char *store = test_shm_of("max_keys=64&timeout_ms=50");
    mirab_options *options;
    mirab_limiter *limiter;
    mirab_decision decision;
    mirab_stats stats;
    CHECK_OK(mirab_options_new(&error, &options));
    CHECK_OK(mirab_options_set_on_store_failure(options, choice, &error));
    CHECK_OK(mirab_options_set_instances(options, instances, &error));
    CHECK_OK(mirab_limiter_new(MANY, store, options, &error, &limiter));
    mirab_options_free(options);
    CHECK_OK(beside_one_that_is_stopped(limiter, store, &decision));
    CHECK(decision.degraded);
    CHECK_OK(mirab_limiter_stats(limiter, &error, &stats));
    CHECK(stats.errors == 0 && stats.degraded == 1);
    mirab_limiter_free(limiter);
    return decision;
}

static void decided(void) {
    mirab_decision decision = degraded("local", 4);
    CHECK(decision.allowed);
    CHECK_NUMBER(decision.limit, 1000000000);
    CHECK_NUMBER(decision.used, 1);
    decision = degraded("open", 1);
    CHECK(decision.allowed && decision.used == 0);
    decision = degraded("closed", 1);
    CHECK(!decision.allowed && !decision.never);
}

/* It is told within a second or so, and a new file begun. */
static void removed(void) {
    const char *line = "", *store = test_shm();
    mirab_limiter *limiter = limiter_on("5/hour", store);
    mirab_decision decision;
    CHECK_OK(mirab_limiter_acquire(limiter, bytes("k"), 1, 3, &error, &decision));
    CHECK(unlink(shm_path(store)) == 0);
    for (int i = 0; *line == '\0' && i < 3000; i++) {
        CHECK_OK(mirab_limiter_acquire(limiter, bytes("other"), 5, 1, &error, &decision));
        line = next_line(limiter);
        pause_us(10000);
    }
    CHECK(strstr(line, "was removed") != NULL && strstr(line, shm_path(store)) != NULL);
    CHECK_OK(mirab_limiter_peek(limiter, bytes("k"), 1, 1, &error, &decision));
    CHECK_NUMBER(decision.used, 0);
    CHECK(access(shm_path(store), F_OK) == 0);
    mirab_limiter_free(limiter);
}

int main(void) {
    CHECK(atexit(end_child) == 0);
    SCENE(raised());
    SCENE(decided());
    SCENE(removed());
    return tell(0);
}
