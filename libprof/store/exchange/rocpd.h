/* Captures of AMD's rocprofv3, laid down as the tables of an Nsight Systems export. */
#ifndef PERFKIT_STORE_EXCHANGE_ROCPD_H
#define PERFKIT_STORE_EXCHANGE_ROCPD_H

#include "libprof/store/exchange/parts.h"

/* Do the tables of rocpd stand in the schema `schema` of the connection? */
bool rocpd_is(sqlite3 *db, const char *schema);

/* Read those of the schema `src` of the connection into its schema main, which is empty: the tables
 * of nsys.h. What a capture has no place for is counted in rows PERFKIT_NOTE of META_DATA_EXPORT.
 */
enum prof_status rocpd_stage(sqlite3 *db, const char *path, struct prof_error *err);

#endif
