/* Ranks, as markup: what holds them up in words, where each one's time went, and who waited in
 * which iteration. The numbers stand in the tables below. */
#include <stdio.h>

#include "report/html_markup.h"
#include "report/html_panels.h"
#include "report/ranks.h"

/* More would not be told apart; the tables have all. */
#define RANKS 64
#define ITERATIONS 120

static void put_rank_name(FILE *out, const struct prof_rank_row *row)
{
    if (row->rank == PROF_UNKNOWN)
        fprintf(out, "<span class=\"rank-name\">process %lld</span>", (long long)row->pid);
    else
        fprintf(out, "<span class=\"rank-name\">rank %lld</span>", (long long)row->rank);
}

static void put_rank_slice(FILE *out, const char *class, int64_t ns, int64_t window)
{
    if (ns <= 0 || window <= 0)
        return;
    fprintf(out, "<span class=\"%s\" style=\"width:", class);
    prof_html_real(out, (double)ns / (double)window * 100);
    fputs("%\"></span>", out);
}

/* What is left of `ns` when `less` of it is told by itself. */
static int64_t remaining_time(int64_t ns, int64_t less)
{
    return ns > less ? ns - less : 0;
}

static void put_bars(FILE *out, const struct prof_ranks *ranks)
{
    fputs("<h3 id=\"rank-time\">Where each rank's time went</h3>\n<p class=\"faint\">"
          "<span class=\"legend slice-kernel\"></span>computing <span class=\"legend "
          "slice-copy_other\">"
          "</span>copying <span class=\"legend slice-exchange\"></span>in collectives that nothing "
          "covers "
          "<span class=\"legend slice-wait\"></span>of that, waiting for other ranks; the rest is "
          "idle</p>\n<div class=\"ranks\" aria-hidden=\"true\">\n",
          out);
    for (size_t i = 0; i < ranks->count && i < RANKS; i++) {
        const struct prof_rank_row *row = &ranks->rows[i];
        put_rank_name(out, row);
        fputs("<div class=\"stack\">", out);
        put_rank_slice(out, "slice-kernel", row->compute_ns, row->window_ns);
        put_rank_slice(out, "slice-copy_other", row->copy_ns, row->window_ns);
        put_rank_slice(out, "slice-exchange", remaining_time(row->exposed_ns, row->wait_ns),
                       row->window_ns);
        put_rank_slice(out, "slice-wait",
                       row->wait_ns < row->exposed_ns ? row->wait_ns : row->exposed_ns,
                       row->window_ns);
        fputs("</div>\n", out);
    }
    fputs("</div>\n", out);
}

static double waiting_share(const struct prof_rank_iteration *row)
{
    double share = row->duration_ns > 0 ? (double)row->wait_ns / (double)row->duration_ns : 0;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Iterations stand in order of number, then rank. `most`: the share that is drawn full. */
static void put_iterations_of(FILE *out, const struct prof_ranks *ranks, uint32_t rank, double most)
{
    for (size_t i = 0; i < ranks->iteration_count; i++) {
        const struct prof_rank_iteration *row = &ranks->iterations[i];
        if (row->iteration >= ITERATIONS)
            break;
        if (row->rank != rank)
            continue;
        fprintf(out, "<span class=\"cell%s\"><i style=\"opacity:", row->slowest ? " slowest" : "");
        prof_html_real(out, most > 0 ? waiting_share(row) / most : 0);
        fputs("\"></i></span>", out);
    }
}

static void put_iterations(FILE *out, const struct prof_ranks *ranks)
{
    double most = 0;
    for (size_t i = 0; i < ranks->iteration_count; i++)
        most = waiting_share(&ranks->iterations[i]) > most ? waiting_share(&ranks->iterations[i])
                                                           : most;
    fputs("<h3 id=\"rank-waiting\">Which rank waited in which iteration</h3>\n<p class=\"faint\">A "
          "column "
          "is an "
          "instance of <code>",
          out);
    prof_html_text(out, ranks->iteration_name);
    fprintf(out,
            "</code>: the fuller, the longer the rank waited in it, at most %s of it; framed is "
            "the one that "
            "the others waited for.</p>\n<div class=\"ranks\" aria-hidden=\"true\">\n",
            prof_percent(most).text);
    for (uint32_t i = 0; i < ranks->count && i < RANKS; i++) {
        put_rank_name(out, &ranks->rows[i]);
        fputs("<div class=\"cells\">", out);
        put_iterations_of(out, ranks, i, most);
        fputs("</div>\n", out);
    }
    fputs("</div>\n", out);
}

void prof_html_put_ranks(FILE *out, const struct prof_html_page *page)
{
    const struct prof_ranks *ranks = &page->data->ranks;
    struct prof_report_notes notes;
    prof_report_rank_notes(page->data, &notes);
    if (notes.count)
        fputs("<ul>\n", out);
    for (size_t i = 0; i < notes.count; i++)
        prof_html_element(out, "li", NULL, notes.text[i]);
    if (notes.count)
        fputs("\n</ul>\n", out);
    if (ranks->count < 2)
        return;
    put_bars(out, ranks);
    if (ranks->iteration_count)
        put_iterations(out, ranks);
}
