/* Shared memory: one bucket for processes, what is wrong with a file, and what there is to tell of it. What happens to it
 * while it is used is in disturbed.c. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

static mirab_error error;

static uint64_t used(const mirab_limiter *limiter) {
    mirab_decision decision;
    CHECK_OK(mirab_limiter_peek(limiter, bytes("k"), 1, 1, &error, &decision));
    return decision.used;
}

/* Asks so often, and says how many passed. */
static int ask(const mirab_limiter *limiter, int times) {
    int passed = 0;
    for (int i = 0; i < times; i++) {
        bool allowed = false;
        if (mirab_limiter_allow(limiter, bytes("k"), 1, 1, &error, &allowed) != MIRAB_OK) return 255;
        passed += allowed;
    }
    return passed;
}

enum { CHILDREN = 4, EACH = 60, CAPACITY = 200 };

/* Forked children ask the limiter of their parent, or make one of their own. */
static void by_processes(const char *limits, bool with_the_parents) {
    const char *store = test_shm();
    mirab_limiter *limiter = limiter_on(limits, store);
    pid_t children[CHILDREN];
    int passed = ask(limiter, 10), status;
    CHECK(passed == 10);
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] > 0) continue;
        if (!with_the_parents) {
            mirab_limiter_free(limiter);
            if (mirab_limiter_new(limits, store, NULL, &error, &limiter) != MIRAB_OK) _exit(255);
        }
        passed = ask(limiter, EACH);
        mirab_limiter_free(limiter);
        _exit(passed);
    }
    for (int i = 0; i < CHILDREN; i++) {
        CHECK(waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status));
        passed += WEXITSTATUS(status);
    }
    CHECK_NUMBER((uint64_t)passed, CAPACITY);
    CHECK_NUMBER(used(limiter), CAPACITY);
    mirab_limiter_free(limiter);
}

static void what_it_says(void) {
    const char *store = test_shm_of("max_keys=64");
    mirab_limiter *limiter = limiter_on("5/hour", store);
    mirab_health health;
    mirab_stats stats;
    struct stat file;
    char key[16];
    CHECK_OK(mirab_limiter_health(limiter, &error, &health));
    CHECK(health.ok && health.layout == 1 && health.clock_ahead_us == MIRAB_NO_CLOCK);
    CHECK_TEXT(health.circuit, "closed");
    CHECK_TEXT(health.server_version, "");
    CHECK(strncmp(health.store, store, strcspn(store, "?")) == 0 && strchr(health.store, '?') == NULL);
    CHECK(stat(shm_path(store), &file) == 0 && (file.st_mode & 0777) == 0600);

    for (int i = 0; i < 1000; i++) {
        bool allowed = false;
        const int length = snprintf(key, sizeof key, "key %d", i);
        CHECK_OK(mirab_limiter_allow(limiter, bytes(key), (size_t)length, 1, &error, &allowed));
        CHECK(allowed);
    }
    CHECK_OK(mirab_limiter_stats(limiter, &error, &stats));
    CHECK(stats.keys >= 64 && stats.keys <= 500);
    CHECK_NUMBER(stats.keys + stats.evicted, 1000);
    mirab_limiter_free(limiter);
}

/* The error names the file and its owner. */
static void wrong(const char *store, mirab_result expected, const char *part) {
    mirab_limiter *limiter = NULL;
    CHECK_FAILS(mirab_limiter_new("5/minute", store, NULL, &error, &limiter), expected, part);
    CHECK(strstr(error.message, shm_path(store)) != NULL && strstr(error.message, " of user ") != NULL);
    CHECK(limiter == NULL);
}

static void wrong_files(void) {
    const char *store = test_shm();
    FILE *file = fopen(shm_path(store), "w");
    CHECK(file != NULL);
    wrong(store, MIRAB_STORE_CORRUPT, "only 0 bytes");
    for (int i = 0; i < 40000; i++) CHECK(fputc('x', file) == 'x');
    CHECK(fclose(file) == 0);
    wrong(store, MIRAB_STORE_CORRUPT, "");
    CHECK(unlink(shm_path(store)) == 0 && symlink("/nowhere", shm_path(store)) == 0);
    wrong(store, MIRAB_STORE_DENIED, "symbolic link");
    CHECK(unlink(shm_path(store)) == 0 && mkdir(shm_path(store), 0700) == 0);
    wrong(store, MIRAB_STORE_CORRUPT, "folder");
    CHECK(rmdir(shm_path(store)) == 0);
}

static void wrong_uri(const char *store, const char *part) {
    mirab_limiter *limiter = NULL;
    CHECK_FAILS(mirab_limiter_new("5/minute", store, NULL, &error, &limiter), MIRAB_INVALID_URI, part);
    CHECK(limiter == NULL);
}

static void too_long(void) {
    const char *store = test_shm_of("max_keys=64&log_entries=100");
    mirab_limiter *limiter = limiter_on("sliding_log: 128/hour", store);
    mirab_limiter_free(limiter);
    CHECK_FAILS(mirab_limiter_new("sliding_log: 129/hour", store, NULL, &error, &limiter), MIRAB_UNSUPPORTED,
                "log_entries=256");
    CHECK_FAILS(mirab_limiter_new("concurrency: 65 for 30s", store, NULL, &error, &limiter), MIRAB_UNSUPPORTED,
                "log_entries=256");
}

static bool next_line(const mirab_limiter *limiter, char *line) {
    bool told = false;
    CHECK_OK(mirab_limiter_take_news(limiter, &error, &told, line, MIRAB_NEWS_SIZE));
    return told;
}

/* That the file was made with another size is told of when the limiter is made. */
static void another_size(void) {
    char line[MIRAB_NEWS_SIZE], other[128];
    const char *store = test_shm_of("max_keys=64");
    mirab_limiter *limiter = limiter_on("5/hour", store), *larger;
    CHECK(!next_line(limiter, line));
    snprintf(other, sizeof other, "%.*s?max_keys=65", (int)strcspn(store, "?"), store);
    larger = limiter_on("5/hour", other);
    CHECK(next_line(larger, line));
    CHECK(strstr(line, "made with max_keys=64, not 65") != NULL);
    CHECK(!next_line(limiter, line) && !next_line(larger, line));
    mirab_limiter_free(limiter);
    mirab_limiter_free(larger);
}

int main(void) {
    SCENE(by_processes("200/year", true));
    SCENE(by_processes("fixed_window: 200/30 years", false));
    SCENE(by_processes("sliding_log: 200/year; 900/year", false));
    SCENE(what_it_says());
    SCENE(wrong_files());
    SCENE(wrong_uri("shm:", "1 to 64"));
    SCENE(wrong_uri("shm:a/b", "a/b"));
    SCENE(wrong_uri("shm:x?max_keys=0", "max_keys"));
    SCENE(wrong_uri("shm:x?mode=666", "666"));
    SCENE(too_long());
    SCENE(another_size());
    return tell(0);
}
