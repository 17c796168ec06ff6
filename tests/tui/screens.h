/* One scene that the app shows, and what is on its screen. */
#ifndef PERFKIT_TESTS_TUI_SCREENS_H
#define PERFKIT_TESTS_TUI_SCREENS_H

#include "tests/tui/scene.h"
#include "tui/app.h"

extern struct scene scene;
extern struct tui_app app;

void open_finished(bool ascii);
void close_scene(void);

/* The screen of the app in that size, to be freed. */
char *screen(int width, int height);
/* That a text is on it, or is not. */
void shows(const char *what, int width, int height);
void lacks(const char *what, int width, int height);

#endif
