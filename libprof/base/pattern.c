/* See pattern.h. The pattern is read as regcomp reads it, or more strictly: a list that has a class
 * in it ends here at the class. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/pattern.h"

#define MOST_PATTERN_BYTES 1000u
#define MOST_COPIES 1000u /* of a part of the pattern, by {n} within {n} */

const char *prof_pattern_excess(const char *pattern)
{
    unsigned long long copies = 1;
    bool in_list = false;
    if (strlen(pattern) > MOST_PATTERN_BYTES)
        return "it is longer than 1000 bytes";
    for (const char *at = pattern; *at; at++) {
        if (in_list) { /* between [ and ], where a ] in front means itself */
            in_list = *at != ']';
        } else if (*at == '[') {
            in_list = true;
            at += at[1] == '^';
            at += at[1] == ']';
        } else if (*at == '\\' && at[1]) {
            at++;
            if (*at >= '1' && *at <= '9')
                return "it has a back-reference";
        } else if (*at == '{') {
            unsigned long least = strtoul(at + 1, NULL, 10), most = least;
            const char *comma = at + 1 + strspn(at + 1, "0123456789");
            if (*comma == ',')
                most = strtoul(comma + 1, NULL, 10);
            most = most > least ? most : least;
            if (most > MOST_COPIES || (copies *= most ? most : 1) > MOST_COPIES)
                return "it repeats too often";
        }
    }
    return NULL;
}
