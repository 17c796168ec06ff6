/* Reads a capture with libprof: whether it is complete, what its kernels took, what to mend first.
 *
 *     cc read_capture.c $(pkg-config --cflags --libs libprof) -o read_capture
 *     ./read_capture run.sqlite
 *
 * Exit status 0, or 1 when the capture cannot be read. */
#include <prof.h>
#include <stdio.h>

#define MOST_ROWS 10

/* What was lost, if anything: every figure below is of what was recorded. */
static int print_trust(struct prof_capture *capture, struct prof_error *err)
{
    struct prof_trust trust;
    if (prof_trust(capture, &trust, err))
        return -1;
    printf("%s: %s\n", prof_info(capture)->command, prof_trust_status_words(trust.status));
    prof_trust_free(&trust);
    return 0;
}

static int print_kernels(struct prof_capture *capture, struct prof_error *err)
{
    struct prof_kernel_summary kernels;
    if (prof_kernel_summary(capture, NULL, PROF_BY_NAME, &kernels, err))
        return -1;
    for (size_t i = 0; i < kernels.count && i < MOST_ROWS; i++) {
        const struct prof_kernel_row *row = &kernels.rows[i];
        printf("%10s %8s x %10s  %s\n", prof_duration_ns(row->duration_ns.sum).text,
               prof_count(row->duration_ns.count).text, prof_duration(row->duration_ns.mean).text,
               row->name ? row->name : "n/a"); /* absent is NULL, never "" */
    }
    prof_kernel_summary_free(&kernels);
    return 0;
}

static int print_findings(struct prof_capture *capture, struct prof_error *err)
{
    struct prof_findings findings;
    if (prof_findings(capture, NULL, &findings, err))
        return -1;
    if (findings.count)
        printf("%s: %s\n", findings.rows[0].rule->title, findings.rows[0].seen);
    prof_findings_free(&findings);
    return 0;
}

int main(int argc, char **argv)
{
    struct prof_capture *capture;
    struct prof_error err = {0};
    int failed;
    if (argc != 2) {
        fprintf(stderr, "usage: %s CAPTURE\n", argv[0]);
        return 1;
    }
    if (prof_open(argv[1], &capture, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    failed =
        print_trust(capture, &err) || print_kernels(capture, &err) || print_findings(capture, &err);
    if (failed)
        fprintf(stderr, "%s\n", err.message);
    prof_close(capture);
    return failed;
}
