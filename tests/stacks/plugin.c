/* A library that is loaded and unloaded: calls back. Built twice, with frames of two sizes. */
#ifndef PLUGIN_ROOM
#define PLUGIN_ROOM 40
#endif

int plugin_call(int (*function)(void *), void *argument);

int plugin_call(int (*function)(void *), void *argument)
{
    char room[PLUGIN_ROOM];
    __asm__ volatile("" : : "r"(room) : "memory");
    int result = function(argument);
    __asm__ volatile("" : : "r"(room) : "memory");
    return result;
}
