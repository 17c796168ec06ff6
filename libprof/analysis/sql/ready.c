/* Ready queries of perfkit sql --list, on the views of a capture. */
#include "libprof/include/prof_sql.h"

static const struct prof_sql_ready ready[] = {
    {"top_kernels", "Kernels by total time, with their quickest and slowest launch.",
     "SELECT name, count(*) AS launches, sum(duration_ns) AS total_ns, avg(duration_ns) AS "
     "mean_ns, "
     "min(duration_ns) AS min_ns, max(duration_ns) AS max_ns FROM kernels WHERE duration_ns NOT "
     "NULL GROUP BY name ORDER BY total_ns DESC"},
    {"slowest_launches", "Single kernel executions, the longest first.",
     "SELECT id, name, start_ns, duration_ns, device, stream, grid, block, call FROM kernels WHERE "
     "duration_ns NOT NULL ORDER BY duration_ns DESC LIMIT 50"},
    {"kernel_shapes",
     "Launch configurations of each kernel: grid, block, registers, shared memory.",
     "SELECT name, grid, block, registers, shared_bytes, count(*) AS launches, sum(duration_ns) AS "
     "total_ns FROM kernels GROUP BY name, grid, block, registers, shared_bytes ORDER BY total_ns "
     "DESC"},
    {"launch_latency", "From the call to the start of kernels, by stream.",
     "SELECT device, stream, count(*) AS launches, avg(launch_latency_ns) AS mean_ns, "
     "max(launch_latency_ns) AS max_ns FROM kernels WHERE launch_latency_ns NOT NULL GROUP BY "
     "device, stream ORDER BY mean_ns DESC"},
    {"transfer_kinds", "Memcpys and memsets by kind and kinds of memory, with their rate.",
     "SELECT kind, from_memory, to_memory, count(*) AS count, sum(bytes) AS total_bytes, "
     "sum(duration_ns) AS total_ns, sum(bytes) * 1.0 / nullif(sum(duration_ns), 0) AS gb_per_s "
     "FROM transfers WHERE duration_ns NOT NULL GROUP BY kind, from_memory, to_memory ORDER BY "
     "total_ns DESC"},
    {"small_transfers", "Memcpys of less than 64 KiB by the call that made them.",
     "SELECT kind, call, count(*) AS count, avg(bytes) AS mean_bytes, sum(duration_ns) AS total_ns "
     "FROM transfers WHERE kind <> 'memset' AND bytes < 65536 GROUP BY kind, call ORDER BY count "
     "DESC"},
    {"call_times", "API functions by total time, with the threads that call them.",
     "SELECT name, count(*) AS calls, sum(duration_ns) AS total_ns, avg(duration_ns) AS mean_ns, "
     "max(duration_ns) AS max_ns, count(DISTINCT pid || '.' || tid) AS threads FROM calls GROUP BY "
     "name ORDER BY total_ns DESC"},
    {"failed_calls", "API calls that failed, by function and code.",
     "SELECT name, result, count(*) AS calls, min(start_ns) AS first_ns FROM calls WHERE result "
     "NOT "
     "NULL AND result <> 0 GROUP BY name, result ORDER BY calls DESC"},
    {"blocked_in", "How long the host was blocked in synchronizations, by call.",
     "SELECT call, kind, count(*) AS count, sum(call_duration_ns) AS total_ns, "
     "max(call_duration_ns) AS max_ns FROM synchronizations GROUP BY call, kind ORDER BY total_ns "
     "DESC"},
    {"range_times", "NVTX ranges by total time.",
     "SELECT name, domain, count(*) AS count, sum(duration_ns) AS total_ns, avg(duration_ns) AS "
     "mean_ns, min(duration_ns) AS min_ns, max(duration_ns) AS max_ns FROM ranges GROUP BY name, "
     "domain ORDER BY total_ns DESC"},
    {"idle_gaps", "The longest stretches in which a device had nothing to do, and what came after.",
     "WITH work AS (SELECT device_name, pid, device, name, start_ns, start_ns + duration_ns AS "
     "end_ns FROM kernels WHERE duration_ns NOT NULL UNION ALL SELECT device_name, pid, device, "
     "kind, start_ns, start_ns + duration_ns FROM transfers WHERE duration_ns NOT NULL), line AS "
     "(SELECT *, max(end_ns) OVER (PARTITION BY pid, device ORDER BY start_ns ROWS BETWEEN "
     "UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until FROM work) SELECT pid, device, busy_until "
     "AS start_ns, start_ns - busy_until AS gap_ns, name AS followed_by FROM line WHERE start_ns > "
     "busy_until ORDER BY gap_ns DESC LIMIT 50"},
    {"never_freed", "Allocations that were not freed before the end, the largest first.",
     "SELECT id, kind, bytes, start_ns, pid, tid, device, stack FROM allocations WHERE end_ns IS "
     "NULL ORDER BY bytes DESC"},
    {"largest_allocations", "Allocations by size.",
     "SELECT id, kind, bytes, start_ns, duration_ns, pid, tid, device FROM allocations ORDER BY "
     "bytes DESC LIMIT 50"},
    {"slow_iterations", "Iterations that took unusually long, with what they did.",
     "SELECT number, phase, tid, start_ns, duration_ns, device_ns, api_ns, sync_ns, launches, "
     "transfers, bytes FROM iterations WHERE slow ORDER BY duration_ns DESC"},
    {"iteration_times", "Iterations by phase and thread.",
     "SELECT phase, pid, tid, count(*) AS count, avg(duration_ns) AS mean_ns, min(duration_ns) AS "
     "min_ns, max(duration_ns) AS max_ns, sum(slow) AS slow FROM iterations WHERE NOT warm_up "
     "GROUP BY phase, pid, tid ORDER BY min(start_ns)"},
    {"what_to_fix", "Findings, with the most that fixing each can save.",
     "SELECT rule, severity, bound_ns, bound_share, phase, title, fix FROM findings"},
};

const struct prof_sql_ready *prof_sql_ready(size_t index)
{
    return index < sizeof ready / sizeof *ready ? &ready[index] : NULL;
}
