/* The prepared statements of the ingest, and how values are bound to them.
 * For the ingest's files only, see ingest_private.h. */
#ifndef PERFKIT_STORE_INGEST_SQL_H
#define PERFKIT_STORE_INGEST_SQL_H

#include <stdint.h>

#include <sqlite3.h>

#include "libprof/base/error.h"
#include "libprof/store/rollup_sums.h"

struct prof_ingest;

/* Prepared statements, one table: name, SQL */
#define INGEST_SQL_MAP(X)                                                                          \
    X(STRING, "INSERT INTO string(id,value) VALUES(?1,?2)")                                        \
    X(CONFIG, "INSERT INTO launch_config(id,name,demangled,grid_x,grid_y,grid_z,block_x,block_y,"  \
              "block_z,cluster_x,cluster_y,cluster_z,registers,shared_static,shared_dynamic,"      \
              "local_bytes,ragged) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16," \
              "?17)")                                                                              \
    X(PROCESS, "INSERT INTO process(id,pid,parent_pid,command,birth,start) "                       \
               "VALUES(?1,?2,?3,?4,?5,?6)")                                                        \
    X(PROCESS_END, "UPDATE process SET end=?2,end_reason=?3,exit_status=?4,exit_signal=?5 "        \
                   "WHERE id=?1")                                                                  \
    X(PROCESS_SPOOL, "UPDATE process SET spool=?2,rank=?3,local_rank=?4,world_size=?5,job=?6 "     \
                     "WHERE id=?1")                                                                \
    X(THREAD, "INSERT INTO thread(id,process,tid,name) VALUES(?1,?2,?3,?4)")                       \
    X(THREAD_NAME, "UPDATE thread SET name=?2 WHERE id=?1")                                        \
    /* REPLACE: defined again, now that more is known; the name that the program gave stays. */    \
    X(DEVICE,                                                                                      \
      "REPLACE INTO device(id,process,api,ordinal,name,vendor,driver,uuid,kind,integrated,"        \
      "compute_major,compute_minor,units,warp,clock_khz,memory_clock_khz,memory_bus_bits,"         \
      "memory_bytes,memory_bandwidth,l2_bytes,shared_per_unit_bytes,"                              \
      "shared_per_block_bytes,registers_per_unit,max_threads_per_unit,max_block,label) "           \
      "VALUES("                                                                                    \
      "?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,"            \
      "?23,?24,?25,(SELECT label FROM device WHERE id=?1))")                                       \
    X(DEVICE_NAME, "UPDATE device SET label=?2 WHERE id=?1")                                       \
    X(CONTEXT, "REPLACE INTO context(id,process,device,api,native,green,parent,units,name) "       \
               "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,(SELECT name FROM context WHERE id=?1))")           \
    X(CONTEXT_NAME, "UPDATE context SET name=?2 WHERE id=?1")                                      \
    X(STREAM, "REPLACE INTO stream(id,process,device,context,api,native,name,priority,is_default," \
              "out_of_order,non_blocking,clock) VALUES(?1,?2,?3,?4,?5,?6,"                         \
              "coalesce(?7,(SELECT name FROM stream WHERE id=?1)),?8,?9,?10,?11,?12)")             \
    X(STREAM_NAME, "UPDATE stream SET name=?2 WHERE id=?1")                                        \
    X(OBJECT_NAME, "INSERT INTO object_name(process,kind,handle,name) VALUES(?1,?2,?3,?4)")        \
    X(CATEGORY, "INSERT INTO category(process,domain,category,name) VALUES(?1,?2,?3,?4)")          \
    X(MODULE, "INSERT INTO module(process,start,path,build_id,address,bytes,segment) "             \
              "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                      \
    X(MODULE_END, "UPDATE module SET end=?2 WHERE id=?1")                                          \
    X(STACK, "INSERT INTO stack(id,parent,frame,depth) VALUES(?1,?2,?3,?4)")                       \
    X(FRAME, "INSERT INTO frame(id,process,kind,address,module,offset) VALUES(?1,?2,?3,?4,?5,?6)") \
    X(SYMBOL, "INSERT INTO symbol(frame,level,function,file,line) VALUES(?1,?2,?3,?4,?5)")         \
    X(CLOCK, "INSERT INTO clock_sync(process,device,clock,source_ns,mono_ns,error_ns) "            \
             "VALUES(?1,?2,?3,?4,?5,?6)")                                                          \
    X(STREAM_CLOCK, "UPDATE stream SET clock=?2 WHERE id=?1")                                      \
    X(HEALTH, "INSERT INTO capture_health(process,subject,item,value,note) "                       \
              "VALUES(?1,?2,?3,?4,?5)")                                                            \
    X(SPOOL, "INSERT INTO ingest_spool(id,name,process,finished) VALUES(?1,?2,?3,0)")              \
    X(SPOOL_FINISHED, "UPDATE ingest_spool SET finished=1 WHERE id=?1")                            \
    X(KERNEL, "INSERT INTO kernel(start,duration,stream,config,api_name,api_lead,api_duration,"    \
              "thread,correlation,queue_delay,submit_delay,graph_node,flags,stack) "               \
              "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)")                            \
    X(TRANSFER, "INSERT INTO transfer(start,duration,stream,bytes,kind,api_name,api_lead,"         \
                "api_duration,thread,correlation,queue_delay,submit_delay,source_kind,"            \
                "target_kind,blocking,peer,graph_node,flags,stack) "                               \
                "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)")      \
    X(MEMSET, "INSERT INTO memset(start,duration,stream,bytes,value,api_name,api_lead,"            \
              "api_duration,thread,correlation,queue_delay,submit_delay,memory_kind,graph_node,"   \
              "flags,stack) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)")       \
    X(SYNC, "INSERT INTO sync(start,duration,stream,kind,api_name,api_lead,api_duration,thread,"   \
            "correlation,event,stack,recorded) "                                                   \
            "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)")                                      \
    X(CALL, "INSERT INTO api_call(start,duration,thread,name,result,source,correlation,stack) "    \
            "VALUES(?1,?2,?3,?4,?5,?6,?7,?8)")                                                     \
    X(GRAPH_LAUNCH,                                                                                \
      "INSERT INTO graph_launch(start,duration,stream,graph,correlation,queue_delay,"              \
      "submit_delay) VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                \
    X(GRAPH_NODE, "INSERT INTO graph_node(start,thread,node,graph,original,class,stack) "          \
                  "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                  \
    X(EVENT_RECORD, "INSERT INTO event_record(start,stream,event,recorded,correlation) "           \
                    "VALUES(?1,?2,?3,?4,?5)")                                                      \
    X(OVERHEAD, "INSERT INTO overhead(start,duration,process,thread,kind,stream,correlation) "     \
                "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                    \
    X(MIGRATION, "INSERT INTO migration(start,duration,process,kind,bytes,faults,address,source,"  \
                 "target,cause,stream) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")                \
    X(POOL, "INSERT INTO memory_pool(process,start,pool,operation,device,bytes,used_bytes,"        \
            "kept_bytes,threshold_bytes,thread,correlation) "                                      \
            "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")                                          \
    X(JIT,                                                                                         \
      "INSERT INTO jit(start,duration,process,thread,device,input,operation,cache_bytes,path,"     \
      "correlation) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)")                                       \
    X(RECORDING, "INSERT INTO recording(process,start,begins,reason) VALUES(?1,?2,?3,?4)")         \
    X(COUNTER_DEVICE,                                                                              \
      "REPLACE INTO counter_device(id,uuid,ordinal,name,chip,metric_set,interval) "                \
      "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                              \
    X(COUNTER, "INSERT INTO counter(counter_device,slot,name,unit,metric,kind,clock,peak,traced) " \
               "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)")                                               \
    X(COUNTER_BURST, "INSERT INTO counter_burst(counter_device,start,duration,samples,others,"     \
                     "overflow,decode) VALUES(?1,?2,?3,?4,?5,?6,?7)")                              \
    X(COUNTER_SAMPLE,                                                                              \
      "INSERT INTO counter_sample(counter_device,start,duration,c0,c1,c2,c3,c4,c5,"                \
      "c6,c7,c8,c9,c10,c11,c12,c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23) "                      \
      "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,"                     \
      "?19,?20,?21,?22,?23,?24,?25,?26,?27)")                                                      \
    X(EXACT_COUNT, "INSERT INTO exact_count(start,config,stream,correlation,name,unit,metric,"     \
                   "value) VALUES(?1,?2,?3,?4,?5,?6,?7,?8)")                                       \
    X(CPU_SAMPLE, "INSERT INTO cpu_sample(start,thread,cpu,kind,duration,weight,stack) "           \
                  "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                  \
    X(PROCESS_CLAIM, "UPDATE process SET pid=?2,parent_pid=?3,command=?4,birth=?5 WHERE id=?1")    \
    X(ALLOCATION, "INSERT INTO allocation(process,start,bytes,kind,native,address,source,device,"  \
                  "context,thread,stack) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")              \
    X(DEVICE_AT,                                                                                   \
      "SELECT min(id) FROM device WHERE process = ?1 AND ordinal = ?2 AND api = 'cuda'")           \
    X(PROCESS_LAST, "SELECT max(id) FROM process WHERE pid = ?1")                                  \
    X(REALTIME, "SELECT start_realtime_ns FROM capture WHERE ?1 = 0")                              \
    X(BLOCK, "INSERT INTO block(process,device,start,bytes,address,stack) "                        \
             "VALUES(?1,?2,?3,?4,?5,?6)")                                                          \
    X(BLOCK_END, "UPDATE block SET end=?2 WHERE id=?1")                                            \
    X(DEVICE_OF, "SELECT min(id) FROM device WHERE uuid = ?1")                                     \
    X(PROCESS_OF, "SELECT 1 FROM process WHERE pid = ?1 LIMIT 1")                                  \
    X(DEVICE_MEMORY, "INSERT INTO device_memory(device,start,total,used,process_used) "            \
                     "VALUES(?1,?2,?3,?4,?5)")                                                     \
    X(DEVICE_CLOCK, "INSERT INTO device_clock(device,start,sm_mhz,sm_max_mhz,memory_mhz,power_mw," \
                    "power_limit_mw,temperature,reasons) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)")      \
    X(ALLOCATION_FAILURE, "INSERT INTO allocation_failure(process,start,thread,device,context,"    \
                          "kind,bytes,result,source,stack) "                                       \
                          "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)")                                \
    X(FREED, "UPDATE allocation SET end=?2,end_thread=?3 WHERE id=?1")                             \
    X(RANGE, "INSERT INTO range(start,duration,thread,name,domain,depth,end_thread,category,"      \
             "color,payload) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10)")                              \
    X(MARKER, "INSERT INTO marker(start,thread,name,domain,category,color,payload) "               \
              "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                      \
    X(RANGE_FIELD, "INSERT INTO range_field(range,name,value) VALUES(?1,?2,?3)")                   \
    X(WORK, "INSERT INTO work(range,flop,bytes_read,bytes_written) VALUES(?1,?2,?3,?4)")           \
    X(ROLLUP, ROLLUP_INSERT)                                                                       \
    X(CURSOR, "INSERT OR REPLACE INTO ingest_cursor(spool,chunk,generation,offset,tid) "           \
              "VALUES(?1,?2,?3,?4,?5)")                                                            \
    X(MAP, "INSERT INTO ingest_map(spool,local,kind,global,extra) VALUES(?1,?2,?3,?4,?5)")         \
    X(STATE, "INSERT OR REPLACE INTO ingest_state(key,value) VALUES(?1,?2)")

enum ingest_sql {
#define X(name, sql) INGEST_SQL_##name,
    INGEST_SQL_MAP(X)
#undef X
        INGEST_SQLS
};

/* Binding helpers: 0-valued "unknown" becomes NULL with ingest_bind_known. */
static inline void ingest_bind(sqlite3_stmt *sql, int at, int64_t value)
{
    sqlite3_bind_int64(sql, at, value);
}
static inline void ingest_bind_known(sqlite3_stmt *sql, int at, int64_t value)
{
    if (value)
        sqlite3_bind_int64(sql, at, value);
    else
        sqlite3_bind_null(sql, at);
}
/* Without memory for the copy, `failed` is set: the row is not written with a NULL instead. */
void ingest_bind_text(struct prof_ingest *ingest, sqlite3_stmt *sql, int at, const char *text);

/* Keeps the first code that is a failure in `failed`. */
void ingest_check(struct prof_ingest *ingest, int code);
/* Ends a query; false when not all of its rows were read. */
bool ingest_query_end(struct prof_ingest *ingest, sqlite3_stmt *row);
/* prof_store_fail; the reason is what ingest_check kept, if anything. */
enum prof_status ingest_fail(const struct prof_ingest *ingest, const char *doing,
                             struct prof_error *err);

/* Step and reset. Bindings stay. */
bool ingest_run(struct prof_ingest *ingest, enum ingest_sql which);

/* ingest.c */
enum prof_status ingest_statements_prepare(struct prof_ingest *ingest, struct prof_error *err);
void ingest_statements_finalize(struct prof_ingest *ingest);

#endif
