/* A library of the program that, while it is loaded, waits for a thread that uses CUDA. The lock of
 * the loader is held all the while: whoever needs it in a callback waits for ever. */
void plugin_loaded(void); /* program.c */

__attribute__((constructor)) static void load(void)
{
    plugin_loaded();
}
