/* Opens a capture and prints its status, by a file that only the static library has, or that it
 * opened. */
#include <prof.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    struct prof_error err;
    struct prof_capture *capture;
    if (argc < 2 || prof_open(argv[1], &capture, &err)) {
        puts(argc < 2 ? "no file" : err.message);
        return 1;
    }
#ifdef STABLE
    puts(prof_status_text(PROF_OK));
#else
    struct prof_trust trust;
    if (!prof_trust(capture, &trust, &err)) {
        puts(prof_trust_status_words(trust.status));
        prof_trust_free(&trust);
    }
#endif
    prof_close(capture);
    return 0;
}
