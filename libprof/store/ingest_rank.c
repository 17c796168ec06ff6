/* Programs that start their ranks themselves (torch.multiprocessing) tell them who they are when
 * they run already, and what a launcher said is then of the program and the same in all of them.
 * The program gives NCCL the rank in ncclCommInitRank, and passes it on in the payload of its NVTX
 * range. */
#include "libprof/store/ingest_rank.h"

#include "libprof/store/ingest_private.h"

/* declared: of each call. sizes: of the communicators of one size of a process. largest: the
 * largest of each process (SQLite takes the other columns from the row of the max). fit: those that
 * want one.
 */
#define DECLARED                                                                                   \
    "WITH declared AS (SELECT f.range, max(CASE WHEN f.name IN (SELECT id FROM string WHERE "      \
    "value = 'Rank') THEN f.value END) AS rank, max(CASE WHEN f.name IN (SELECT id FROM string "   \
    "WHERE value = 'No. of ranks') THEN f.value END) AS size FROM range_field f WHERE f.name IN "  \
    "(SELECT id FROM string WHERE value IN ('Rank', 'No. of ranks')) GROUP BY 1), "                \
    "sizes AS (SELECT t.process, declared.size, min(declared.rank) AS rank, max(declared.rank) "   \
    "AS other "                                                                                    \
    "FROM declared JOIN range r ON r.id = declared.range JOIN string d ON d.id = r.domain AND "    \
    "d.value = 'NCCL' JOIN thread t ON t.id = r.thread WHERE typeof(declared.rank) = 'integer' "   \
    "AND "                                                                                         \
    "typeof(declared.size) = 'integer' AND declared.rank BETWEEN 0 AND declared.size - 1 GROUP "   \
    "BY 1, 2), "                                                                                   \
    "largest AS (SELECT process, max(size) AS size, rank, other FROM sizes GROUP BY 1), "          \
    "fit AS (SELECT l.process, l.size, l.rank FROM largest l JOIN process p ON p.id = l.process "  \
    "WHERE l.rank = l.other AND l.size = (SELECT max(size) FROM largest) AND (p.rank IS NULL OR "  \
    "1 < (SELECT count(*) FROM largest m JOIN process q ON q.id = m.process WHERE q.rank = "       \
    "p.rank))) "                                                                                   \
    "SELECT process, rank, size FROM fit f WHERE 1 = (SELECT count(*) FROM fit g WHERE g.rank = "  \
    "f.rank)"

/* A local rank beside a rank that was not this process's own is not its own either. */
#define SET                                                                                        \
    "UPDATE process SET local_rank = CASE WHEN rank = ?2 THEN local_rank END, rank = ?2, "         \
    "world_size = ?3 WHERE id = ?1"

struct declared {
    int64_t process, rank, size;
};
struct declared_list {
    PROF_ARRAY(struct declared) rows;
};

static enum prof_status read_declared(struct prof_ingest *ingest, struct declared_list *list)
{
    sqlite3_stmt *row;
    enum prof_status status = ingest_query(ingest, DECLARED, &row);
    while (!status && sqlite3_step(row) == SQLITE_ROW) {
        struct declared *declared = prof_array_add(&list->rows);
        status = ingest_memory(ingest, declared != NULL, "ranks");
        if (declared)
            *declared =
                (struct declared){sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1),
                                  sqlite3_column_int64(row, 2)};
    }
    return ingest_query_end(ingest, row, status);
}

static enum prof_status write_declared(struct prof_ingest *ingest, const struct declared_list *list)
{
    sqlite3_stmt *set;
    PROF_TRY(ingest_query(ingest, SET, &set));
    enum prof_status status = PROF_OK;
    for (size_t i = 0; !status && i < list->rows.count; i++) {
        sqlite3_bind_int64(set, 1, list->rows.data[i].process);
        sqlite3_bind_int64(set, 2, list->rows.data[i].rank);
        sqlite3_bind_int64(set, 3, list->rows.data[i].size);
        sqlite3_step(set);
        status = ingest_check(ingest, sqlite3_reset(set));
    }
    return ingest_query_end(ingest, set, status);
}

enum prof_status ingest_ranks_of_nccl(struct prof_ingest *ingest)
{
    struct declared_list list = {.rows = {0}};
    enum prof_status status = read_declared(ingest, &list);
    if (!status && list.rows.count)
        status = write_declared(ingest, &list);
    prof_array_free(&list.rows);
    return status;
}
