/* Writes the capture of scene.c, finished, for the tests of the screen:
 *     tui_make_scene NAME SECONDS     prints its path */
#include <stdio.h>
#include <stdlib.h>

#include "tests/check_main.h"
#include "tests/tui/scene.h"

static const char *name;
static int seconds;

/* The scene checks itself, which Check allows within its tests only. */
START_TEST(make)
{
    struct scene scene;
    scene_make(&scene, name);
    for (int second = 0; second < seconds; second++)
        scene_second(&scene, second, true);
    scene_state(&scene, "complete", (int64_t)seconds * 1000000000 - 500000000);
    scene_publish(&scene);
    puts(scene.path);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    name = argv[1];
    seconds = atoi(argv[2]);
    return check_run_here(make);
}
