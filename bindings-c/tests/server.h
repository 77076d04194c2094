/* The server of MIRAB_TEST_REDIS itself, for programs that have one of their own: they look into it, and stop it. */
#ifndef SERVER_H
#define SERVER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include "check.h"

/* A decision's deadline, and what may be added to it; a busy machine may take so much more in a test. */
enum { DEADLINE_US = 50000, GRACE_US = 20000, SLOWER = 10 };

static inline int64_t real_us(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* A URI of that server. */
static inline void server_uri(char *uri, size_t room, const char *parameters) {
    const char *server = getenv("MIRAB_TEST_REDIS");
    if (server == NULL || strncmp(server, "redis://127.0.0.1:", 18) != 0)
        FAIL("MIRAB_TEST_REDIS must name a Redis of this program's own: run it by scripts/with-redis.sh");
    snprintf(uri, room, "%s%s", server, parameters);
}

/* What a section of INFO says, as text. */
static inline void server_info(const char *section, char *text, size_t room) {
    char uri[64];
    server_uri(uri, sizeof uri, "");
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)atoi(uri + 18)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int connection = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connection >= 0 && connect(connection, (const struct sockaddr *)&address, sizeof address) == 0);
    char command[64];
    const int length = snprintf(command, sizeof command, "INFO %s\r\nQUIT\r\n", section);
    CHECK(write(connection, command, (size_t)length) == length);
    size_t filled = 0;
    ssize_t received;
    while ((received = read(connection, text + filled, room - 1 - filled)) > 0) filled += (size_t)received;
    CHECK(received == 0 && filled < room - 1);
    text[filled] = '\0';
    CHECK(close(connection) == 0);
}

/* The number behind a name; 0 where it isn't told. */
static inline uint64_t number_after(const char *text, const char *name) {
    const char *found = strstr(text, name);
    return found == NULL ? 0 : strtoull(found + strlen(name), NULL, 10);
}

/* How often it was asked to run a script. */
static inline uint64_t server_calls(void) {
    static char text[16384];
    server_info("commandstats", text, sizeof text);
    return number_after(text, "cmdstat_evalsha:calls=") + number_after(text, "cmdstat_eval:calls=");
}

static pid_t server_stopped;

static inline void server_go_on(void) {
    if (server_stopped != 0) kill(server_stopped, SIGCONT);
    server_stopped = 0;
}

/* Stops it where it stands: the kernel still takes what is sent to it. It goes on when the program ends, too. */
static inline void server_stop(void) {
    static char text[16384];
    static bool is_prepared;
    char name[64], state = '\0';
    server_info("server", text, sizeof text);
    if (!is_prepared) CHECK(atexit(server_go_on) == 0);
    is_prepared = true;
    server_stopped = (pid_t)number_after(text, "process_id:");
    CHECK(server_stopped > 0 && kill(server_stopped, SIGSTOP) == 0);
    /* It may still be at work when the signal is on its way. */
    snprintf(name, sizeof name, "/proc/%ld/stat", (long)server_stopped);
    while (state != 'T') {
        FILE *file = fopen(name, "r");
        CHECK(file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && fclose(file) == 0);
    }
}

#endif
