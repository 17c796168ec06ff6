/* A library whose loading never comes to its end: another thread ends the process meanwhile, with
 * the dynamic loader's lock held. */
#include <pthread.h>
#include <unistd.h>

static void *leave(void *unused)
{
    (void)unused;
    _exit(7);
}

__attribute__((constructor)) static void never_return(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, leave, NULL) == 0) {
        for (;;)
            pause();
    }
}
