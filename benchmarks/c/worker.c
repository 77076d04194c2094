/*
 * The worker of the class c-memory: mirab through its C header, and what one would write by hand instead.
 *
 * What it says and answers stands in benchmarks/README.md.
 */
#define _GNU_SOURCE

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "contenders.h"

struct scenario {
    const char *name;
    size_t keys, threads;
    struct limits limits;
    size_t contenders; /* the first so many of CONTENDERS */
};

/* So much that it never refuses, and so slow that one busy key's bucket is never full again. */
#define LARGE {"1000000000/hour", 1000000000, 3600}
/* The same for many keys: what is held of a key is alive when its turn comes again. */
#define LASTING {"10000 per 20 days", 10000, 20 * 86400}
#define USED_UP {"1/hour", 1, 3600}
#define POLICY_1 {"1000000000/minute", 1000000000, 60}
#define POLICY_3 {"1000000000/minute; 1000000000/hour; 1000000000/day", 1000000000, 60}

static const struct scenario SCENARIOS[] = {
    {"hot", 1, 1, LARGE, 4},
    {"hot_2t", 1, 2, LARGE, 4},
    {"denied", 1, 1, USED_UP, 4},
    {"denied_2t", 1, 2, USED_UP, 4},
    {"keys_100k", 100000, 1, LASTING, 3},
    {"keys_100k_2t", 100000, 2, LASTING, 3},
    {"policy_1", 1, 1, POLICY_1, 2},
    {"policy_3", 1, 1, POLICY_3, 2},
};

#define SCENARIO_COUNT (sizeof SCENARIOS / sizeof *SCENARIOS)

_Noreturn void fail(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c != '\0'; c++)
        if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
            *c = '\'';
    printf("{\"error\": \"%s\"}\n", text);
    fflush(stdout);
    exit(1);
}

static void *room(size_t count, size_t size) {
    void *made = calloc(count, size);
    if (made == NULL)
        fail("out of memory");
    return made;
}

/* --- keys ---------------------------------------------------------------------------------------------------- */

static struct keys keys_new(size_t count) {
    struct keys keys = {room(count, KEY_SIZE), count, NULL};
    for (size_t i = 0; i < count; i++) {
        char text[KEY_SIZE + 1];
        snprintf(text, sizeof text, "user:%011zu", i % 100000000000u);
        memcpy(keys.all[i], text, KEY_SIZE);
    }
    return keys;
}

/* Random indexes, the same in every run (xorshift64*). */
static uint32_t *order_new(size_t count) {
    uint32_t *order = room(ORDER, sizeof *order);
    uint64_t state = 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < ORDER; i++) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        order[i] = (uint32_t)((state * 0x2545F4914F6CDD1Du >> 32) * count >> 32);
    }
    return order;
}

/* --- slots --------------------------------------------------------------------------------------------------- */

struct slot {
    const struct scenario *scenario;
    const struct contender *contender;
    struct subject subject;
    size_t from;
};

struct thread {
    struct slot *slot;
    pthread_barrier_t *start;
    size_t from;
    uint64_t ns, begun, ended;
    struct tally tally;
};

static void *thread_run(void *argument) {
    struct thread *thread = argument;
    struct slot *slot = thread->slot;
    slot->contender->run(&slot->subject, thread->from, thread->ns / 10);
    pthread_barrier_wait(thread->start);
    thread->begun = now_ns();
    thread->tally = slot->contender->run(&slot->subject, thread->from, thread->ns);
    thread->ended = now_ns();
    return NULL;
}

static void slot_init(struct slot *slot, const struct scenario *scenario, size_t contender) {
    struct keys keys = keys_new(scenario->keys);
    if (keys.count > 1)
        keys.order = order_new(keys.count);
    slot->scenario = scenario;
    slot->contender = &CONTENDERS[contender];
    slot->from = 0;
    subject_init(&slot->subject, contender, scenario->limits, keys);
    for (size_t i = 0; i < keys.count; i++)
        if (!slot->contender->once(&slot->subject, keys.all[i]) && scenario->limits.amount > 1)
            fail("the first decision for key %zu was a refusal", i);
}

static void slot_measure(struct slot *slot, double ms) {
    struct thread threads[2];
    pthread_t ids[2];
    pthread_barrier_t start;
    size_t count = slot->scenario->threads;
    pthread_barrier_init(&start, NULL, (unsigned)count);
    for (size_t i = 0; i < count; i++) {
        size_t from = slot->from + i * (ORDER / count);
        threads[i] = (struct thread){.slot = slot, .start = &start, .from = from, .ns = (uint64_t)(ms * 1e6)};
        if (i > 0 && pthread_create(&ids[i], NULL, thread_run, &threads[i]) != 0)
            fail("a thread could not be started");
    }
    thread_run(&threads[0]);
    uint64_t begun = threads[0].begun, ended = threads[0].ended;
    struct tally sum = threads[0].tally;
    for (size_t i = 1; i < count; i++) {
        pthread_join(ids[i], NULL);
        begun = threads[i].begun < begun ? threads[i].begun : begun;
        ended = threads[i].ended > ended ? threads[i].ended : ended;
        sum.count += threads[i].tally.count;
        sum.admitted += threads[i].tally.admitted;
    }
    pthread_barrier_destroy(&start);
    uint64_t expected = slot->scenario->limits.amount > 1 ? sum.count : 0;
    if (sum.admitted != expected)
        fail("%" PRIu64 " of %" PRIu64 " were admitted: it must be %" PRIu64, sum.admitted, sum.count, expected);
    slot->from += sum.count;
    printf("{\"ns\": %.4f, \"count\": %" PRIu64 "}\n", (double)(ended - begun) / (double)sum.count, sum.count);
}

/* --- the conversation ---------------------------------------------------------------------------------------- */

static void hello(void) {
    printf("{\"class\": \"c-memory\", \"versions\": {\"mirab\": \"%s\", \"cc\": \"%s\"}, \"contenders\": {",
           mirab_version(), __VERSION__);
    for (size_t i = 0; i < CONTENDER_COUNT; i++)
        printf("%s\"%s\": {\"kind\": \"%s\", \"note\": \"%s\"}", i ? ", " : "", CONTENDERS[i].name,
               CONTENDERS[i].kind, CONTENDERS[i].note);
    printf("}, \"cells\": [");
    for (size_t i = 0; i < SCENARIO_COUNT; i++)
        for (size_t j = 0; j < SCENARIOS[i].contenders; j++)
            printf("%s{\"scenario\": \"%s\", \"contender\": \"%s\"}", i + j ? ", " : "", SCENARIOS[i].name,
                   CONTENDERS[j].name);
    printf("], \"bytes\": [\"mirab.allow\", \"hand-written\"], \"fresh\": [\"mirab.allow\", \"hand-written\"]}\n");
}

static size_t contender_of(const char *name) {
    for (size_t i = 0; i < CONTENDER_COUNT; i++)
        if (strcmp(CONTENDERS[i].name, name) == 0)
            return i;
    fail("unknown contender '%s'", name);
}

static size_t scenario_of(const char *name) {
    for (size_t i = 0; i < SCENARIO_COUNT; i++)
        if (strcmp(SCENARIOS[i].name, name) == 0)
            return i;
    fail("unknown scenario '%s'", name);
}

/* The questions are those of protocol.py: these three, in this order. */
static void serve(void) {
    static struct slot slots[SCENARIO_COUNT][CONTENDER_COUNT];
    char line[512], scenario_name[64], contender_name[64];
    double ms;
    hello();
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        const char *shape = "{\"scenario\": \"%63[^\"]\", \"contender\": \"%63[^\"]\", \"ms\": %lf}";
        if (sscanf(line, shape, scenario_name, contender_name, &ms) != 3 || !(ms > 0 && ms < 60000))
            fail("not understood: %s", line);
        size_t scenario = scenario_of(scenario_name), contender = contender_of(contender_name);
        if (contender >= SCENARIOS[scenario].contenders)
            fail("%s has no contender '%s'", scenario_name, contender_name);
        struct slot *slot = &slots[scenario][contender];
        if (slot->scenario == NULL)
            slot_init(slot, &SCENARIOS[scenario], contender);
        slot_measure(slot, ms);
        fflush(stdout);
    }
}

/* --- what takes a process of its own ------------------------------------------------------------------------- */

/* The kilobytes of this process that are in memory. */
static double resident_kb(void) {
    char line[256];
    double kb = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL && sscanf(line, "VmRSS: %lf kB", &kb) != 1)
        continue;
    if (status == NULL || kb < 0)
        fail("no VmRSS in /proc/self/status");
    fclose(status);
    return kb;
}

static int by_size(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static void alone(const char *what, size_t number, size_t count) {
    static struct subject subject;
    const struct contender *contender = &CONTENDERS[number];
    uint64_t *times = room(count, sizeof *times);
    memset(times, 1, count * sizeof *times); /* so that it is in memory */
    subject_init(&subject, number, (struct limits)LASTING, keys_new(count + 1));
    contender->once(&subject, subject.keys.all[count]); /* for what happens only once */
    double before = resident_kb(), sum = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t begun = now_ns();
        bool admitted = contender->once(&subject, subject.keys.all[i]);
        times[i] = now_ns() - begun;
        if (!admitted)
            fail("key %zu was refused", i);
    }
    double grown = resident_kb() - before;
    if (strcmp(what, "--bytes") == 0) {
        printf("{\"bytes_per_key\": %.2f}\n", grown * 1024 / (double)count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        sum += (double)times[i];
    qsort(times, count, sizeof *times, by_size);
    printf("{\"p50\": %" PRIu64 ", \"p99\": %" PRIu64 ", \"max\": %" PRIu64 ", \"ns\": %.1f}\n", times[count / 2],
           times[count / 100 * 99], times[count - 1], sum / (double)count);
}

int main(int argc, char **argv) {
    if (argc == 1)
        serve();
    else if (argc == 4 && (strcmp(argv[1], "--bytes") == 0 || strcmp(argv[1], "--fresh") == 0) && atol(argv[3]) > 0)
        alone(argv[1], contender_of(argv[2]), (size_t)atol(argv[3]));
    else
        fail("usage: worker [--bytes|--fresh CONTENDER KEYS]");
    return 0;
}
