/* Programs as captures; see scene.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "tests/check_main.h"
#include "tests/diagnosis/scene.h"

void scene_sql(struct scene *scene, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *sql = sqlite3_vmprintf(format, arguments), *message = NULL;
    va_end(arguments);
    if (sqlite3_exec(prof_store_db(scene->store), sql, NULL, NULL, &message))
        ck_abort_msg("%s: %s", message, sql);
    sqlite3_free(sql);
}

static int string_of(struct scene *scene, const char *text)
{
    sqlite3_stmt *find;
    int id = 0;
    sqlite3_prepare_v2(prof_store_db(scene->store), "SELECT id FROM string WHERE value = ?", -1,
                       &find, NULL);
    sqlite3_bind_text(find, 1, text, -1, SQLITE_STATIC);
    if (sqlite3_step(find) == SQLITE_ROW)
        id = sqlite3_column_int(find, 0);
    sqlite3_finalize(find);
    if (!id) {
        id = ++scene->strings;
        scene_sql(scene, "INSERT INTO string(id, value) VALUES(%d, %Q)", id, text);
    }
    return id;
}

static void add_streams(struct scene *scene, const struct scene_side *side)
{
    for (int i = 0; i < SCENE_STREAMS; i++)
        scene_sql(scene,
                  "INSERT INTO stream(process, device, api, native, is_default, "
                  "non_blocking) VALUES(%d, %d, %Q, %d, 0, 1)",
                  side->process, side->device, scene->api, 7 + i);
}

/* Rows of those that run now. */
static int thread_of(const struct scene *scene)
{
    return scene->sides[scene->side].thread;
}

static int stream_of(const struct scene *scene, int stream)
{
    return scene->sides[scene->side].first_stream + stream + 1;
}

void scene_open(struct scene *scene, const char *api, const char *device)
{
    struct prof_error err = {0};
    bool gpu = !strcmp(device, "gpu");
    *scene = (struct scene){.api = api,
                            .host = 1000000,
                            .launch_ns = 4000,
                            .wake_ns = 8000,
                            .gap_ns = 1000,
                            .latency_ns = 3000};
    snprintf(scene->path, sizeof scene->path, "/tmp/check_rules.%ld.sqlite", (long)getpid());
    ck_assert_msg(!prof_store_create(scene->path, true, &scene->store, &err), "%s", err.message);
    /* Calls are classed by their names, as those of earlier captures. */
    scene_sql(scene, "ALTER TABLE api_call DROP COLUMN class");
    scene_sql(scene,
              "BEGIN; INSERT INTO process(pid, start, end_reason, spool) VALUES(1, 0, 'exit', 's');"
              "INSERT INTO thread(process, tid) VALUES(1, 1);"
              "INSERT INTO device(process, api, ordinal, uuid, name, kind, units, compute_major, "
              "compute_minor, warp, max_threads_per_unit, registers_per_unit, "
              "shared_per_unit_bytes, memory_bytes, memory_bandwidth, clock_khz) VALUES(1, %Q, 0, "
              "'first', 'device', %Q, %d, %s, 32, 2048, 65536, 233472, 1073741824, 4800000000000, "
              "1980000);",
              api, device, gpu ? 132 : 2, gpu && !strcmp(api, "cuda") ? "9, 0" : "NULL, NULL");
    scene->sides[0] = (struct scene_side){.process = 1, .thread = 1, .device = 1};
    add_streams(scene, &scene->sides[0]);
}

void scene_second(struct scene *scene, bool own_process, bool own_device)
{
    struct scene_side *second = &scene->sides[1];
    *second = (struct scene_side){.process = own_process ? 2 : 1,
                                  .thread = 2,
                                  .device = own_process || own_device ? 2 : 1,
                                  .first_stream = SCENE_STREAMS,
                                  .host = scene->host};
    if (own_process)
        scene_sql(scene, "INSERT INTO process(pid, start, end_reason, spool) "
                         "VALUES(2, 0, 'exit', 't')");
    scene_sql(scene, "INSERT INTO thread(process, tid) VALUES(%d, 2)", second->process);
    if (second->device == 2)
        scene_sql(scene,
                  "INSERT INTO device(process, api, ordinal, uuid, name, kind, units, "
                  "compute_major, compute_minor, warp, max_threads_per_unit, registers_per_unit, "
                  "shared_per_unit_bytes, memory_bytes, memory_bandwidth, clock_khz) SELECT %d, "
                  "api, %d, %Q, name, kind, units, compute_major, compute_minor, warp, "
                  "max_threads_per_unit, registers_per_unit, shared_per_unit_bytes, memory_bytes, "
                  "memory_bandwidth, clock_khz FROM device",
                  second->process, (int)own_device, own_device ? "second" : "first");
    add_streams(scene, second);
}

void scene_as(struct scene *scene, int side)
{
    struct scene_side *now = &scene->sides[scene->side], *next = &scene->sides[side];
    now->host = scene->host;
    memcpy(now->stream, scene->stream, sizeof now->stream);
    scene->side = side;
    scene->host = next->host;
    memcpy(scene->stream, next->stream, sizeof next->stream);
}

static void finish(struct scene *scene)
{
    struct prof_error err = {0};
    int64_t end = 0;
    for (int side = 0; side < 2 && scene->sides[side].thread; side++) {
        scene_as(scene, side);
        end = scene->host > end ? scene->host : end;
        for (int i = 0; i < SCENE_STREAMS; i++)
            end = scene->stream[i] > end ? scene->stream[i] : end;
    }
    scene_sql(scene, "INSERT INTO capture(state, duration) VALUES('complete', %lld); COMMIT",
              (long long)end + 1000);
    ck_assert_msg(!prof_store_publish(scene->store, &err), "%s", err.message);
}

struct prof_capture *scene_close(struct scene *scene)
{
    struct prof_capture *capture;
    struct prof_error err = {0};
    finish(scene);
    prof_store_close(scene->store);
    ck_assert_msg(!prof_open(scene->path, &capture, &err), "%s", err.message);
    unlink(scene->path);
    return capture;
}

struct prof_capture *scene_findings(struct scene *scene, struct prof_findings *findings)
{
    struct prof_capture *capture = scene_close(scene);
    struct prof_error err = {0};
    ck_assert_msg(!prof_findings(capture, NULL, findings, &err), "%s", err.message);
    return capture;
}

void scene_done(struct prof_capture *capture, struct prof_findings *findings)
{
    prof_findings_free(findings);
    prof_close(capture);
}

bool scene_save(struct scene *scene, const char *path, const char *sql)
{
    char command[1024];
    finish(scene);
    scene_sql(scene, "%s", sql);
    prof_store_close(scene->store);
    int length = snprintf(command, sizeof command, "mv -f '%s' '%s'", scene->path, path);
    return length < (int)sizeof command && system(command) == 0; /* to another file system too */
}

int scene_config(struct scene *scene, const char *name, int64_t blocks, int64_t threads,
                 int64_t registers)
{
    scene_sql(scene,
              "INSERT INTO launch_config(name, grid_x, grid_y, grid_z, block_x, block_y, block_z, "
              "registers) VALUES(%d, %lld, 1, 1, %lld, 1, 1, %lld)",
              string_of(scene, name), (long long)blocks, (long long)threads, (long long)registers);
    return (int)sqlite3_last_insert_rowid(prof_store_db(scene->store));
}

void scene_host(struct scene *scene, int64_t ns)
{
    scene->host += ns;
}

/* When device work begins that is asked for by a call now. */
static int64_t start_of(struct scene *scene, int stream)
{
    int64_t ready = scene->host + scene->launch_ns / 2 + scene->latency_ns;
    int64_t free = scene->stream[stream] + scene->gap_ns;
    return ready > free ? ready : free;
}

static bool is_cuda(const struct scene *scene)
{
    return !strcmp(scene->api, "cuda");
}

void scene_kernel(struct scene *scene, int stream, int config, int64_t ns)
{
    int64_t start = start_of(scene, stream);
    scene_sql(scene,
              "INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, "
              "api_duration, thread) VALUES(%lld, %lld, %d, %d, %d, %lld, %lld, %d)",
              (long long)start, (long long)ns, stream_of(scene, stream), config,
              string_of(scene, is_cuda(scene) ? "cudaLaunchKernel" : "clEnqueueNDRangeKernel"),
              (long long)(start - scene->host), (long long)scene->launch_ns, thread_of(scene));
    scene->stream[stream] = start + ns;
    scene->host += scene->launch_ns;
}

void scene_graph(struct scene *scene, int stream, const int *configs, const int64_t *ns, int count)
{
    int64_t start = start_of(scene, stream);
    scene_sql(scene,
              "INSERT INTO api_call(start, duration, thread, name, source, correlation) "
              "VALUES(%lld, %lld, %d, %d, 1, %d)",
              (long long)scene->host, (long long)scene->launch_ns * 2, thread_of(scene),
              string_of(scene, "cudaGraphLaunch"), ++scene->correlation);
    for (int i = 0; i < count; i++) {
        scene_sql(scene,
                  "INSERT INTO kernel(start, duration, stream, config, correlation) "
                  "VALUES(%lld, %lld, %d, %d, %d)",
                  (long long)start, (long long)ns[i], stream_of(scene, stream), configs[i],
                  scene->correlation);
        start += ns[i] + 600;
    }
    scene->stream[stream] = start;
    scene->host += scene->launch_ns * 2;
}

void scene_copy(struct scene *scene, int stream, enum scene_direction direction,
                enum scene_memory memory, int64_t bytes, int64_t ns, bool waits)
{
    int64_t start = start_of(scene, stream), end = start + ns;
    bool up = direction == SCENE_UP;
    waits |= is_cuda(scene) && !up && memory == SCENE_PAGEABLE; /* whatever it is called by */
    const char *name = !is_cuda(scene) ? (up ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer")
                       : waits         ? "cudaMemcpy"
                                       : "cudaMemcpyAsync";
    int64_t call = waits ? end + scene->wake_ns - scene->host : scene->launch_ns;
    scene_sql(scene,
              "INSERT INTO transfer(start, duration, stream, bytes, kind, api_name, api_lead, "
              "api_duration, thread, source_kind, target_kind, blocking) VALUES(%lld, %lld, %d, "
              "%lld, %d, %d, %lld, %lld, %d, %d, %d, %d)",
              (long long)start, (long long)ns, stream_of(scene, stream), (long long)bytes,
              (int)direction, string_of(scene, name), (long long)(start - scene->host),
              (long long)call, thread_of(scene), up ? (int)memory : 3, up ? 3 : (int)memory, waits);
    scene->stream[stream] = end;
    scene->host += call;
}

void scene_fill(struct scene *scene, int stream, int64_t bytes, int64_t ns)
{
    int64_t start = start_of(scene, stream);
    scene_sql(scene,
              "INSERT INTO memset(start, duration, stream, bytes, api_name, api_lead, "
              "api_duration, thread) VALUES(%lld, %lld, %d, %lld, %d, %lld, %lld, %d)",
              (long long)start, (long long)ns, stream_of(scene, stream), (long long)bytes,
              string_of(scene, is_cuda(scene) ? "cudaMemsetAsync" : "clEnqueueFillBuffer"),
              (long long)(start - scene->host), (long long)scene->launch_ns, thread_of(scene));
    scene->stream[stream] = start + ns;
    scene->host += scene->launch_ns;
}

void scene_sync(struct scene *scene)
{
    int64_t end = scene->host;
    for (int i = 0; i < SCENE_STREAMS; i++)
        end = scene->stream[i] > end ? scene->stream[i] : end;
    end += scene->wake_ns;
    scene_sql(scene,
              "INSERT INTO sync(start, duration, kind, api_name, api_lead, api_duration, thread) "
              "VALUES(%lld, %lld, 4, %d, 0, %lld, %d)",
              (long long)scene->host, (long long)(end - scene->host),
              string_of(scene, is_cuda(scene) ? "cudaDeviceSynchronize" : "clFinish"),
              (long long)(end - scene->host), thread_of(scene));
    scene->host = end;
}

void scene_call(struct scene *scene, const char *name, int64_t ns)
{
    scene_sql(scene,
              "INSERT INTO api_call(start, duration, thread, name, source) "
              "VALUES(%lld, %lld, %d, %d, 1)",
              (long long)scene->host, (long long)ns, thread_of(scene), string_of(scene, name));
    scene->host += ns;
}

void scene_lifetime(struct scene *scene, int64_t start_ns, int64_t freed_ns, int64_t bytes,
                    int kind)
{
    char freed[32] = "NULL";
    if (freed_ns != PROF_UNKNOWN)
        snprintf(freed, sizeof freed, "%lld", (long long)freed_ns);
    scene_sql(scene,
              "INSERT INTO allocation(process, start, \"end\", bytes, kind, device, thread) "
              "VALUES(%d, %lld, %s, %lld, %d, %d, %d)",
              scene->sides[scene->side].process, (long long)start_ns, freed, (long long)bytes, kind,
              scene->sides[scene->side].device, thread_of(scene));
}

void scene_push(struct scene *scene, const char *name)
{
    scene->names[scene->depth] = string_of(scene, name);
    scene->ranges[scene->depth++] = scene->host;
}

void scene_pop(struct scene *scene)
{
    int64_t start = scene->ranges[--scene->depth];
    scene_sql(scene,
              "INSERT INTO range(start, duration, thread, name, depth) "
              "VALUES(%lld, %lld, %d, %d, %d)",
              (long long)start, (long long)(scene->host - start), thread_of(scene),
              scene->names[scene->depth], scene->depth);
}

void scene_work(struct scene *scene, double flop, double bytes)
{
    scene_sql(scene,
              "INSERT INTO work(range, flop, bytes_read, bytes_written) "
              "VALUES((SELECT max(id) FROM range), %f, %f, %f)",
              flop, bytes / 2, bytes / 2);
}
