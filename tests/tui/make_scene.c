/* Writes the capture of scene.c, finished, for the tests of the screen:
 *     tui_make_scene NAME SECONDS     prints its path */
#include <stdio.h>
#include <stdlib.h>

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
    Suite *suite = suite_create("scene");
    TCase *core = tcase_create("core");
    tcase_set_timeout(core, 300);
    tcase_add_test(core, make);
    suite_add_tcase(suite, core);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
