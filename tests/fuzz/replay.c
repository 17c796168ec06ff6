/* Runs a fuzz target over files, for compilers without a fuzzer: what the fuzzer once found, or
 * thinks worth keeping, is tried with every test run. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/image.h"

int main(int argc, char **argv)
{
    static uint8_t data[1 << 20];
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        LLVMFuzzerTestOneInput(data, size);
    }
    printf("%d inputs\n", argc - 1);
    return argc < 2;
}
