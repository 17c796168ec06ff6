#include "libprof/analysis/rules/judge.h"

const struct prof_rule prof_rules_roof[] = {{.judge = NULL}};
