#ifndef TESTS_WORKLOADS_MODULE_H
#define TESTS_WORKLOADS_MODULE_H

/* Pushes and pops "from the module" and declares "module work" {1, 2, 3}. */
void module_annotate(void);

#endif
