/* A process with a civil clock of its own, on a machine whose clock nobody may set.
 *
 * The clock is read without a system call, by a function that the kernel maps into each process. As a library that
 * is loaded first, this file names another image in the place of the kernel's (the first part); compiled with
 * IMAGE, it is that image (the second). Only SHIFT seconds of the civil clock differ. */
#ifndef IMAGE

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static void *image = MAP_FAILED;

__attribute__((constructor)) static void map_image(void)
{
    int file = open(getenv("SHIFTED_CLOCK"), O_RDONLY);
    image = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    if (image == MAP_FAILED)
        abort();
}

unsigned long getauxval(unsigned long type)
{
    unsigned long (*next)(unsigned long) = (unsigned long (*)(unsigned long))dlsym(RTLD_NEXT, "getauxval");
    return type == AT_SYSINFO_EHDR ? (unsigned long)image : next(type);
}

#else

struct moment { long seconds, nanoseconds; };

int __vdso_clock_gettime(int clock, struct moment *now)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(228L), "D"((long)clock), "S"(now) : "rcx", "r11", "memory");
    if (clock == 0)
        now->seconds += SHIFT;
    return (int)result;
}

#endif
