/* See places.h. Prints "at ADDRESS EXPECTED" and "base ADDRESS BYTES PATH" of its own file. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "places.h"

#ifndef VERSION
#define VERSION 1
#endif
#define STAY __asm__ volatile("" ::: "memory")

__attribute__((noinline)) void mark(const char *expected)
{
    printf("at %p %s\n", (void *)((char *)__builtin_return_address(0) - 1), expected);
}

static __attribute__((noinline)) void hidden(void)
{
    mark("hidden@hidden"); /* @hidden */
    STAY;
}

static inline __attribute__((always_inline)) void middle(const char *expected)
{
    innermost(expected); /* @middle */
    STAY;
}

__attribute__((noinline)) void visible(int version)
{
    middle("innermost@header middle@middle visible@visible"); /* @visible */
    STAY;
    if (version > 1)
        mark("visible@later"); /* @later */
    STAY;
}

static void own_mapping(void)
{
    char line[4200], self[4096] = "";
    unsigned long long start, end, low = 0, high = 0;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    FILE *maps = fopen("/proc/self/maps", "r");
    self[length < 0 ? 0 : length] = '\0';
    while (maps && fgets(line, sizeof line, maps)) {
        line[strcspn(line, "\n")] = '\0';
        if (!strstr(line, self) || sscanf(line, "%llx-%llx", &start, &end) != 2)
            continue;
        low = low ? low : start;
        high = end;
    }
    printf("base %llu %llu %s\n", low, high - low, self);
}

int main(void)
{
    own_mapping();
    hidden();
    visible(VERSION);
    return 0;
}
