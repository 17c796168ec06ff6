/* Whose a spool folder is: the lock on its file, not the pid in it, says whether the perfkit that
 * made it is still there. */
#ifndef PERFKIT_SPOOL_OWNER_H
#define PERFKIT_SPOOL_OWNER_H

#define SPOOL_OWNER_FILE "owner"

enum spool_owner {
    SPOOL_OWNER_UNKNOWN, /* no spool folder of this user */
    SPOOL_OWNER_DEAD,
    SPOOL_OWNER_LIVES,
};
enum spool_owner spool_owner(const char *folder);

#endif
