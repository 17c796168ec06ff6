/* The roofline as a picture, or as the script of one (roofline_script.c). */
#include "report/gnuplot.h"
#include "report/roofline.h"
#include "report/writers.h"

struct request {
    struct prof_capture *capture;
    const struct prof_report_options *options;
};

static enum prof_status write_roofline_script(void *context, const char *terminal, FILE *out,
                                              struct prof_error *err)
{
    const struct request *request = context;
    const struct prof_report_options *options = request->options;
    struct prof_roofline roofline;
    enum prof_status status =
        prof_roofline(request->capture, options ? options->filter : NULL,
                      options ? options->roofline : PROF_ROOFLINE_KERNELS, &roofline, err);
    if (!status)
        status = prof_report_roofline_script(&roofline, request->capture, terminal, out, err);
    prof_roofline_free(&roofline);
    return status;
}

static enum prof_status write_picture(struct prof_capture *capture,
                                      const struct prof_report_options *options,
                                      const char *terminal, FILE *out, struct prof_error *err)
{
    struct request request = {capture, options};
    return prof_gnuplot_draw(write_roofline_script, &request, terminal,
                             ", or write OUT.gp and run gnuplot on that elsewhere", out, err);
}

enum prof_status prof_report_write_roofline_svg(struct prof_capture *capture,
                                                const struct prof_report_options *options,
                                                FILE *out, struct prof_error *err)
{
    return write_picture(capture, options, "svg", out, err);
}

enum prof_status prof_report_write_roofline_png(struct prof_capture *capture,
                                                const struct prof_report_options *options,
                                                FILE *out, struct prof_error *err)
{
    return write_picture(capture, options, "pngcairo", out, err);
}

enum prof_status prof_report_write_roofline_script(struct prof_capture *capture,
                                                   const struct prof_report_options *options,
                                                   FILE *out, struct prof_error *err)
{
    struct request request = {capture, options};
    enum prof_status status = write_roofline_script(&request, NULL, out, err);
    return status ? status : prof_report_flush(out, err);
}
