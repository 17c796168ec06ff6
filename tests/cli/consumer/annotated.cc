// A program with a range of perfkit/annotate.h, which links nothing.
#include <perfkit/annotate.h>

int main()
{
    perfkit_range_push("consumer");
    perfkit_range_pop();
    return 0;
}
