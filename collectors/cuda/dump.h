/* The layout of a CUPTI dump: what CUPTI handed to the collector of one process, as it came.
 *
 * A user sends one with a bug report, and tests replay it on machines without a GPU
 * (tests/cuda/fakes). Written by dump.c, read by tests/cuda/fakes/replay.c and, independently of
 * these declarations, by tests/cuda/dump_reader.py.
 *
 * The file is a header and then blocks until the file ends. Little-endian; every block starts at a
 * multiple of 8. A reader skips the bytes of blocks and the tails of structs that it does not know.
 * A file that ends within a block is that of a process that was killed: the blocks before it count.
 */
#ifndef PERFKIT_COLLECTORS_CUDA_DUMP_H
#define PERFKIT_COLLECTORS_CUDA_DUMP_H

#include <stdint.h>

#define DUMP_MAGIC "PFKCUPT\n"
#define DUMP_VERSION 1u
#define DUMP_SUFFIX ".cuptidump"

struct dump_header {
    char magic[8];
    uint32_t version;
    uint32_t bytes;         /* of this header */
    uint32_t cupti_version; /* of cuptiGetVersion */
    uint32_t pid;
    uint64_t monotonic_ns, realtime_ns; /* CLOCK_MONOTONIC and CLOCK_REALTIME at one moment */
};

enum dump_type {
    DUMP_SIZE = 1,
    DUMP_STRING,
    DUMP_BUFFER,
    DUMP_CALLBACK,
    DUMP_FLUSH,
    DUMP_DROPPED,
    DUMP_END, /* no body: the final flush of the process was done and decoded */
    DUMP_REASONS,
    DUMP_CUBIN, /* machine code, once samples fell into it: its bytes, nothing else */
    DUMP_SAMPLES,
};

struct dump_block {
    uint32_t type;  /* enum dump_type */
    uint32_t bytes; /* that follow this head; the next block starts at the next multiple of 8 */
    uint64_t time;  /* CLOCK_MONOTONIC, ns */
};

/* Records of `kind` have `size` bytes, from here on. Comes before the first buffer with that kind.
 */
struct dump_size {
    uint32_t kind, size;
};

/* The text at an address that records of the following buffers hold (DUMP_STRINGS of records.h).
 * Comes again when the text there has changed. */
struct dump_string {
    uint64_t address;
    /* text without NUL, to the end of the block */
};

/* One buffer of CUPTI. block.time: when CUPTI gave it back. */
struct dump_buffer {
    uint32_t requested_by; /* thread on which CUPTI requested it */
    uint32_t
        given_by; /* thread that brought it back: the same, one of CUPTI's, or the flushing one */
    /* the records, to the end of the block */
};

/* A callback on a thread of the program; 0 = not known. block.time: when it came. */
struct dump_callback {
    uint32_t domain, cbid; /* CUpti_CallbackDomain and the id in it */
    uint32_t tid;
    uint32_t site;            /* API calls: 0 begin, 1 end */
    uint32_t correlation;     /* API calls */
    uint32_t context, stream; /* CUPTI's numbers */
    uint32_t graph;           /* cuptiGetGraphId, or cuptiGetGraphExecId of an executable graph */
    uint64_t node, original_node; /* cuptiGetGraphNodeId */
    uint32_t node_type;           /* CUgraphNodeType */
    uint32_t original_graph;
    uint64_t handle; /* of the stream or context, as the program has it */
};

/* cuptiActivityFlushAll begins. */
struct dump_flush {
    uint32_t forced;
    uint32_t reserved;
    uint64_t realtime_ns; /* at block.time */
    uint64_t cupti_ns;    /* cuptiGetTimestamp at block.time, 0 = not known */
};

enum { DUMP_LOST_RECORDS, DUMP_LOST_CALLBACKS };
struct dump_dropped {
    uint64_t count;
    uint32_t
        what; /* records that CUPTI says it dropped; callbacks that found no room in the dump */
    uint32_t reserved;
};

/* PC sampling of a context was configured: the reasons for which warps wait. */
struct dump_reasons {
    uint32_t context; /* CUPTI's number */
    uint32_t count;
    struct dump_reason {
        uint32_t index;
        char name[124];
    } reasons[];
};

/* cuptiPCSamplingGetData of a context. */
struct dump_samples {
    uint32_t context, count; /* of instructions */
    uint64_t total, dropped, of_system, full;
    /* then for each instruction one of these, with its reasons behind it */
};
struct dump_instruction {
    uint64_t crc, offset;
    uint64_t name; /* address, in a DUMP_STRING before */
    uint32_t function, reasons;
    /* then for each reason its index and samples, 32 bits each */
};

_Static_assert(sizeof(struct dump_header) == 40 && sizeof(struct dump_block) == 16, "dump layout");
_Static_assert(sizeof(struct dump_callback) == 64 && sizeof(struct dump_flush) == 24,
               "dump layout");

#endif
