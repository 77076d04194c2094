/* The other file of header_one.c's program: the header defines nothing twice. */
#include <mirab.h>

int two(const mirab_decision *decision);

int two(const mirab_decision *decision) {
    return decision->allowed && decision->retry_after_us == MIRAB_NO_RETRY ? 0 : 1;
}
