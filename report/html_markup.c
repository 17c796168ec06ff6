/* Quoting for HTML. Every character that means something in text or in a quoted attribute is
 * written as a reference; what would hide or turn its surroundings was made visible before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/format.h"
#include "report/html_markup.h"
#include "libprof/base/utf8.h"

static const char *reference_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void prof_html_text(FILE *out, const char *text)
{
    char *clean = prof_report_clean(text);
    for (const char *c = clean ? clean : ""; *c;) {
        size_t plain = strcspn(c, "&<>\"'");
        fwrite(c, 1, plain, out);
        c += plain;
        if (*c)
            fputs(reference_of(*c++), out);
    }
    free(clean);
}

void prof_html_element(FILE *out, const char *tag, const char *attributes, const char *text)
{
    fprintf(out, "<%s%s%s>", tag, attributes ? " " : "", attributes ? attributes : "");
    prof_html_text(out, text);
    fprintf(out, "</%s>", tag);
}

void prof_html_real(FILE *out, double value)
{
    char text[64];
    if (!isfinite(value))
        value = 0;
    prof_print_real(text, round(value * 1000) / 1000);
    fputs(text, out);
}
