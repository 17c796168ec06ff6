// See places.h: names as C++ has them.
#include <cstdio>
#include <cstring>
#include <unistd.h>

extern "C" {
#include "places.h"
__attribute__((noinline)) void mark(const char *expected)
{
    std::printf("at %p %s\n", static_cast<void *>(static_cast<char *>(__builtin_return_address(0)) - 1),
                expected);
}
}
#define STAY __asm__ volatile("" ::: "memory")

namespace shop {
template <class T> struct Till {
    __attribute__((noinline)) void pay(T)
    {
        mark("shop::Till<int>::pay(int)@pay"); /* @pay */
        STAY;
    }
};
namespace {
__attribute__((noinline)) void secret()
{
    innermost("innermost@header shop::(anonymous_namespace)::secret()@secret"); /* @secret */
    STAY;
}
}
void open()
{
    Till<int>().pay(1);
    secret();
}
}

int main()
{
    char line[4200], self[4096] = "";
    unsigned long long start, end, low = 0, high = 0;
    long length = readlink("/proc/self/exe", self, sizeof self - 1);
    std::FILE *maps = std::fopen("/proc/self/maps", "r");
    self[length < 0 ? 0 : length] = '\0';
    while (maps && std::fgets(line, sizeof line, maps))
        if (std::strstr(line, self) && std::sscanf(line, "%llx-%llx", &start, &end) == 2) {
            low = low ? low : start;
            high = end;
        }
    std::printf("base %llu %llu %s\n", low, high - low, self);
    shop::open();
    auto lambda = [](int) __attribute__((noinline)) {
        mark("main::{lambda(int)#1}::operator()(int)_const@lambda"); /* @lambda */
        STAY;
    };
    lambda(1);
    return 0;
}
