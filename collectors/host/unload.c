/* dlclose: what was learned of an object file must be forgotten before another one lies in its
 * place. Only noticed here; sources that registered for it are called. dlopen has no hook: it looks
 * where its caller lies, and through us that would be this library. */
#include <dlfcn.h>

#include "collectors/core/collector.h"
#include "collectors/host/host.h"

HOST_EXPORT int dlclose(void *handle)
{
    if (!host_real.unload)
        host_real_find(); /* called by another library's constructor, before ours */
    int result = host_real.unload ? host_real.unload(handle) : 0;
    collector_unloaded();
    return result;
}
