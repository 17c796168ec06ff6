/* What the target programs share: finding a device, building a program, counting what they do.
 * They are plain OpenCL programs that know nothing of perfkit. */
#ifndef PERFKIT_TESTS_OPENCL_TARGETS_COMMON_H
#define PERFKIT_TESTS_OPENCL_TARGETS_COMMON_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        cl_int must_ = (call);                                                                     \
        if (must_ != CL_SUCCESS) {                                                                 \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, must_);                  \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

/* What a program did; every field is a sum over its threads. */
#define TALLY(X)                                                                                   \
    X(launch)                                                                                      \
    X(launch_failed)                                                                               \
    X(native)                                                                                      \
    X(htod)                                                                                        \
    X(htod_bytes)                                                                                  \
    X(dtoh) X(dtoh_bytes) X(dtod) X(dtod_bytes) X(htoa) X(htoa_bytes) X(atoh) X(atoh_bytes)        \
        X(atoa) X(atoa_bytes) X(atod) X(atod_bytes) X(dtoa) X(dtoa_bytes) X(map) X(map_bytes)      \
            X(unmap) X(unmap_bytes) X(migrate) X(migrate_bytes) X(transfer_failed) X(fill)         \
                X(fill_bytes) X(command_failed) X(alloc) X(alloc_bytes) X(alloc_failed) X(freed)   \
                    X(leak_bytes) X(sync) X(build) X(other) X(queues) X(abandoned)
struct tally {
#define X(name) uint64_t name;
    TALLY(X)
#undef X
};

static inline void tally_add(struct tally *to, const struct tally *from)
{
#define X(name) to->name += from->name;
    TALLY(X)
#undef X
}

static inline void tally_print(const struct tally *tally, const char *path)
{
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    const char *comma = "";
    if (!out) {
        perror(path);
        exit(2);
    }
    fputs("{", out);
#define X(name)                                                                                    \
    fprintf(out, "%s\"%s\": %llu", comma, #name, (unsigned long long)tally->name);                 \
    comma = ", ";
    TALLY(X)
#undef X
    fputs("}\n", out);
    if (out != stdout)
        fclose(out);
}

static inline cl_device_id first_device(void)
{
    cl_platform_id platforms[8];
    cl_device_id device;
    cl_uint count = 0;
    MUST(clGetPlatformIDs(8, platforms, &count));
    for (cl_uint i = 0; i < count && i < 8; i++)
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS)
            return device;
    fputs("no OpenCL device\n", stderr);
    exit(77);
}

static inline cl_program build(cl_context context, cl_device_id device, const char *text)
{
    cl_int error;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    MUST(error);
    MUST(clBuildProgram(program, 1, &device, "", NULL, NULL));
    return program;
}

static inline const char *argument(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return otherwise;
}

static inline long number(int argc, char **argv, const char *name, long otherwise)
{
    const char *text = argument(argc, argv, name, NULL);
    return text ? strtol(text, NULL, 10) : otherwise;
}

#endif
