/* What the files of the fake libcupti share. */
#ifndef PERFKIT_TESTS_CUDA_FAKES_INTERNAL_H
#define PERFKIT_TESTS_CUDA_FAKES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cupti.h>

#include "tests/cuda/fakes/fake_cupti.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- fake_knobs.c */
/* What stands behind `name=` in an environment variable ("name=value,..."); NULL = nothing. */
const char *fake_knob_in(const char *variable, const char *name);
/* A number of FAKE_CUPTI ("name=value,..."); its text. */
long fake_knob(const char *name, long otherwise);
bool fake_knob_text(const char *name, char *value, size_t size);

/* ---- fake_headers.c */
#define FAKE_MAX_KIND 128  /* kinds of records */
#define FAKE_MAX_CBID 2048 /* functions of an API */

/* What cuptiGetVersion says when no knob does. */
void fake_set_version(uint32_t version);
/* Records of `kind` have this size from now on, whatever the version. */
void fake_set_size(uint32_t kind, size_t size);
/* 0: there is no such kind. */
size_t fake_record_size(uint32_t kind);

/* ---- fake_cupti.c */
bool fake_wants_record(const void *record);
/* Write a record into the calling thread's buffer, wanted or not. */
void fake_write(const void *record, size_t size);
/* Bring the calling thread's buffer back as it is. */
void fake_bring_back(void);
/* Records that cuptiActivityGetNumDroppedRecords will tell. */
void fake_tell_dropped(uint64_t count);
uint64_t fake_flushes(void);
/* Have the destructors run? Then nothing of CUPTI's may be called. */
bool fake_is_gone(void);
/* Call the subscriber when it wants this callback. */
bool fake_call_back(CUpti_CallbackDomain domain, uint32_t cbid, const void *data);
bool fake_wants_callback(CUpti_CallbackDomain domain, uint32_t cbid);
/* CLOCK_MONOTONIC to the clock in which records are due: the timestamp callback's, else
 * CLOCK_REALTIME. */
uint64_t fake_record_clock(uint64_t monotonic);

/* ---- fake_pcsampling.c: blocks of a dump */
struct dump_block;
void fake_pc_block(const struct dump_block *block); /* reasons and samples */
void fake_pc_cubin(const struct dump_block *block); /* is loaded now */

/* ---- fake_driver.c: what the handles in callbacks stand for */
struct fake_handle {
    uint64_t number;  /* of a node, graph, stream or context */
    uint64_t context; /* streams */
    uint64_t handle;  /* streams and contexts: the value that goes for the handle */
};
/* The calling thread's stream and context, while it is in a callback about them. */
void fake_present(const struct fake_handle *stream, const struct fake_handle *context);

#endif
