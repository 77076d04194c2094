/*
 * Four threads that rush at a key together with the other programs of test_shared_memory.py:
 * rush LIMITS STORE KEY FOLDER SHARE AFTER
 */
#define _POSIX_C_SOURCE 200809L
#include <mirab.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, PATH_SIZE = 4096 };

static mirab_limiter *limiter;
static const char *key;
static char go[PATH_SIZE];
static int share, after;

static void fail(const char *what, const mirab_error *error) {
    fprintf(stderr, "rush: %s: %s\n", what, error != NULL ? error->message : "failed");
    exit(1);
}

/* How many of its requests passed: `share` of them, and `after` more once one was refused. */
static void *rush(void *passed_out) {
    int passed = 0, turn = 0;
    while (access(go, F_OK) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    while (turn < share || (passed < turn && turn < share + after)) {
        mirab_error error;
        bool allowed;
        if (mirab_limiter_allow(limiter, (const uint8_t *)key, strlen(key), 1, &error, &allowed) != MIRAB_OK)
            fail("allow", &error);
        passed += allowed;
        turn++;
        if (turn % 4 == 0 && turn < share)
            sched_yield();
    }
    *(int *)passed_out = passed;
    return NULL;
}

static void make_limiter(const char *limits, const char *store) {
    mirab_error error;
    mirab_options *options;
    if (mirab_options_new(&error, &options) != MIRAB_OK ||
        mirab_options_set_on_store_failure(options, "raise", &error) != MIRAB_OK ||
        mirab_limiter_new(limits, store, options, &error, &limiter) != MIRAB_OK)
        fail("limiter", &error);
    mirab_options_free(options);
}

static void say_ready(const char *folder) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/ready-%ld", folder, (long)getpid());
    FILE *file = fopen(path, "w");
    if (file == NULL || fclose(file) != 0)
        fail(path, NULL);
}

int main(int argc, char **argv) {
    if (argc != 7)
        fail("usage: rush LIMITS STORE KEY FOLDER SHARE AFTER", NULL);
    pthread_t threads[THREADS];
    int passed[THREADS];
    key = argv[3];
    share = atoi(argv[5]);
    after = atoi(argv[6]);
    snprintf(go, sizeof go, "%s/go", argv[4]);
    make_limiter(argv[1], argv[2]);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, rush, &passed[i]) != 0)
            fail("pthread_create", NULL);
    say_ready(argv[4]);
    for (int i = 0; i < THREADS; i++)
        if (pthread_join(threads[i], NULL) != 0)
            fail("pthread_join", NULL);
    for (int i = 0; i < THREADS; i++)
        printf("%ld %d\n", (long)getpid(), passed[i]);
    mirab_limiter_free(limiter);
    return 0;
}
