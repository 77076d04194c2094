/* The header in one file of a program, and twice in it; header_two.c is the other. */
#include <mirab.h>
#include <mirab.h>

int two(const mirab_decision *decision);

int main(void) {
    mirab_decision decision = {.allowed = true, .retry_after_us = MIRAB_NO_RETRY};
    return two(&decision);
}
