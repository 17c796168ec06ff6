/* The app over one scene, for tests of views (check_views.c) and of keys (check_keys.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tui/screens.h"

struct scene scene;
struct tui_app app;

/* Twelve seconds of the scene, finished: nothing on the screen depends on the clock. */
void open_finished(bool ascii)
{
    scene_make(&scene, "views");
    for (int second = 0; second < 12; second++)
        scene_second(&scene, second, true);
    scene_state(&scene, "complete", 11500000000);
    scene_publish(&scene);
    ck_assert(tui_app_make(&app, scene.path, ascii));
    do
        ck_ok(tui_app_refresh(&app, 0, err));
    while (!app.model->caught_up);
}

void close_scene(void)
{
    tui_app_free(&app);
    scene_remove(&scene);
}

char *screen(int width, int height)
{
    struct tui_grid grid;
    char *text = NULL;
    size_t size = 0;
    ck_assert(tui_grid_make(&grid, width, height, app.ascii));
    tui_app_draw(&app, &grid);
    FILE *out = open_memstream(&text, &size);
    tui_grid_print(&grid, out);
    fclose(out);
    tui_grid_free(&grid);
    return text;
}

void shows(const char *what, int width, int height)
{
    char *text = screen(width, height);
    ck_assert_msg(strstr(text, what) != NULL, "not on the screen: %s\n%s", what, text);
    free(text);
}

void lacks(const char *what, int width, int height)
{
    char *text = screen(width, height);
    ck_assert_msg(strstr(text, what) == NULL, "on the screen: %s\n%s", what, text);
    free(text);
}
