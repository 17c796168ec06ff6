/* A thread that is to be cancelled at its next point of cancellation; status 17.
 *
 *   cancelled mark    leaves the first mark, and only then comes to such a point; 20 more follow
 *   cancelled exit    ends the process by _exit, which is none
 *   cancelled exec    replaces the process by /bin/sh, which is none either */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "perfkit/annotate.h"

static const char *how;
static bool past;

static void *doomed(void *unused)
{
    pthread_cancel(pthread_self());
    if (strcmp(how, "exit") == 0)
        _exit(17);
    if (strcmp(how, "exec") == 0)
        execl("/bin/sh", "sh", "-c", "exit 17", (char *)NULL);
    perfkit_mark("first");
    past = true;
    pthread_testcancel();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    how = argc > 1 ? argv[1] : "";
    bool marks = strcmp(how, "mark") == 0;
    if (!marks)
        perfkit_mark("before");
    if (pthread_create(&thread, NULL, doomed, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    for (int i = 0; marks && i < 20; i++)
        perfkit_mark("after");
    return past ? 17 : 1;
}
