/* Prints the tables and views of a capture file as Markdown, from the same list that creates them
 * (libprof/store/tables.def). Built and run by scripts/format_doc.sh; stands alone so that the page
 * can be made without configuring a build. */
#include <stdio.h>

#include "libprof/store/health.h"
#include "libprof/store/schema.h"

/* A bar would end a table's cell: no text has one (tests/store/check_schema.c). */
int main(void)
{
    printf("Application id %#x (\"PFKT\"), format version (`user_version`) %d.\n",
           PROF_APPLICATION_ID, PROF_FORMAT_VERSION);
    for (const struct prof_table *t = prof_tables; t->name; t++) {
        printf(
            "\n### %s\n\n%s\n\n| column | type | unit or row of | meaning |\n|---|---|---|---|\n",
            t->name, t->text);
        for (const struct prof_column *c = t->columns; c->name; c++) {
            printf("| `%s` | %s | ", c->name, *c->type ? c->type : "any");
            prof_column_print_unit(c, stdout);
            printf(" | %s |\n", c->text);
        }
    }
    printf("\n## Views\n");
    for (const struct prof_view *v = prof_views; v->name; v++) {
        printf("\n### %s\n\n%s\n", v->name, v->text);
        const struct prof_view_column *c = v->parts[0].columns;
        printf("%s", c ? "\n| column | meaning |\n|---|---|\n" : "");
        for (; c && c->name; c++)
            printf("| `%s` | %s |\n", c->name, c->text);
    }
    printf(
        "\n## Codes of the trust block\n\n`code` of `capture_health` and of `trust.statements` in "
        "the JSON documents. Those without a subject are made of the balances and of `capture`.\n"
        "\n| code | level | subject, item | meaning | what to do |\n|---|---|---|---|---|\n");
    for (int i = 0; i < PROF_HEALTH_CODES; i++) {
        const struct prof_health *h = &prof_health[i];
        printf("| `%s` | %s | %s%s%s | %s | %s |\n", h->code, prof_health_level_text(h->level),
               h->subject ? h->subject : "", h->item ? ", " : "", h->item ? h->item : "",
               h->meaning, h->remedy);
    }
    return 0;
}
