/* The one writer of HTML text: what comes from the program under test reaches the markup of a page
 * through these functions only, and stays text. */
#ifndef PERFKIT_REPORT_HTML_MARKUP_H
#define PERFKIT_REPORT_HTML_MARKUP_H

#include <stdio.h>

/* Text, also inside a quoted attribute. Control characters, bidirectional controls and bytes that
 * are not UTF-8 become visible escapes, NULL "n/a", "" "(empty)". */
void prof_html_text(FILE *out, const char *text);

/* <tag attributes>text</tag>; `attributes` is markup of ours ("class=\"mono\""), NULL for none. */
void prof_html_element(FILE *out, const char *tag, const char *attributes, const char *text);

/* A number for an attribute or a coordinate, with a decimal point in every locale and at most three
 * decimals; what is not finite becomes 0. */
void prof_html_real(FILE *out, double value);

#endif
