/* The example at the top of mirab.h, as it stands there: the Makefile cuts header_example.inc out of it. */
#include <mirab.h>
#include <stdio.h>

static int served;

static int fail(const char *message) { return fprintf(stderr, "%s\n", message); }
static void serve(void) { served++; }
static void refuse(void) { served = -1; }
static void refuse_for(uint64_t us) { served = -(int)us; }

int main(void) {
#include "header_example.inc"
    printf("header-example: %d passed, %d failed\n", served == 1, served != 1);
    return served == 1 ? 0 : 1;
}
