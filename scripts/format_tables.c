/* Prints the tables and views of a capture file as Markdown, from the same list that creates them
 * (libprof/store/schema.c). Built and run by scripts/format_doc.sh; stands alone so that the page
 * can be made without configuring a build. */
#include <stdio.h>
#include <string.h>

#include "libprof/store/schema.h"

/* Text in a table cell: a bar would end it. */
static void cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            putchar('\\');
        putchar(*text);
    }
}

int main(void)
{
    printf("Application id %#x (\"PFKT\"), format version (`user_version`) %d.\n",
           PROF_APPLICATION_ID, PROF_FORMAT_VERSION);
    for (const struct prof_table *t = prof_tables; t->name; t++) {
        printf("\n### %s\n\n%s\n\n| column | type | meaning |\n|---|---|---|\n", t->name, t->text);
        for (const struct prof_column *c = t->columns; c->name; c++) {
            printf("| `%s` | %s | ", c->name, *c->type ? c->type : "any");
            cell(c->text);
            printf(" |\n");
        }
    }
    printf("\n## Views\n");
    for (const struct prof_view *v = prof_views; v->name; v++)
        printf("\n### %s\n\n%s\n", v->name, v->text);
    return 0;
}
