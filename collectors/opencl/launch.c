/* Kernel launches: name and configuration of what is launched, queried from the driver once per
 * kernel object. The cache is by handle and handles are used again, so creation and release both
 * make it stale; a local-memory argument changes the memory a group needs and does so too. */
#include <sys/mman.h>

#include "collectors/opencl/ocl.h"

static struct ocl_table kernels;

static struct ocl_kernel *known_kernel(cl_kernel handle)
{
    return (struct ocl_kernel *)(uintptr_t)ocl_table_get(&kernels, handle);
}

static uint32_t kernel_name_id(cl_kernel handle)
{
    char small[2048];
    size_t size = 0;
    if (OCL_CALL(clGetKernelInfo, handle, CL_KERNEL_FUNCTION_NAME, 0, NULL, &size) != CL_SUCCESS ||
        size == 0)
        return 0;
    char *name = size <= sizeof small
                     ? small
                     : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (name == MAP_FAILED)
        return 0;
    uint32_t id = 0;
    if (OCL_CALL(clGetKernelInfo, handle, CL_KERNEL_FUNCTION_NAME, size, name, NULL) == CL_SUCCESS)
        id = collector_string(name, size - 1);
    if (name != small)
        munmap(name, size);
    return id;
}

static uint64_t memory_of(cl_kernel handle, cl_device_id device, cl_kernel_work_group_info what)
{
    cl_ulong bytes = 0;
    if (!device || !ocl_next.clGetKernelWorkGroupInfo ||
        OCL_CALL(clGetKernelWorkGroupInfo, handle, device, what, sizeof bytes, &bytes, NULL) !=
            CL_SUCCESS)
        return UINT64_MAX;
    return bytes;
}

/* The sizes of a launch as they are compared: dimensions, global, local (0: left to the driver). */
#define SIZES 7

static void sizes_of(uint64_t sizes[SIZES], cl_uint dimensions, const size_t *global,
                     const size_t *local)
{
    sizes[0] = dimensions | (uint64_t)(local != NULL) << 32;
    for (unsigned i = 0; i < 3; i++) {
        sizes[1 + i] = i < dimensions && global ? global[i] : 0;
        sizes[4 + i] = i < dimensions && local ? local[i] : 0;
    }
}

/* Every load acquires and every store releases, which keeps them in order without fences. */
static uint32_t recall_launch_config(struct ocl_kernel *kernel, const uint64_t sizes[SIZES])
{
    uint32_t before = atomic_load_explicit(&kernel->version, memory_order_acquire);
    bool same = before % 2 == 0;
    for (unsigned i = 0; i < SIZES && same; i++)
        same = atomic_load_explicit(&kernel->sizes[i], memory_order_acquire) == sizes[i];
    uint32_t config = atomic_load_explicit(&kernel->config, memory_order_acquire);
    return same && atomic_load_explicit(&kernel->version, memory_order_relaxed) == before ? config
                                                                                          : 0;
}

static void remember_launch_config(struct ocl_kernel *kernel, const uint64_t *sizes,
                                   uint32_t config)
{
    uint32_t before = atomic_load_explicit(&kernel->version, memory_order_relaxed);
    if (before % 2 || !atomic_compare_exchange_strong(&kernel->version, &before, before + 1))
        return; /* another thread writes what it launched */
    for (unsigned i = 0; i < SIZES && sizes; i++)
        atomic_store_explicit(&kernel->sizes[i], sizes[i], memory_order_release);
    atomic_store_explicit(&kernel->config, config, memory_order_release);
    atomic_store_explicit(&kernel->version, before + 2, memory_order_release);
}

/* NULL: no memory. */
static struct ocl_kernel *find_or_add_kernel(cl_kernel handle)
{
    struct ocl_kernel *kernel = known_kernel(handle);
    if (kernel)
        return kernel;
    kernel = ocl_alloc(sizeof *kernel);
    return kernel
               ? (struct ocl_kernel *)(uintptr_t)ocl_table_add(&kernels, handle, (uintptr_t)kernel)
               : NULL;
}

/* The kernel with its name defined; NULL when the driver does not know it. */
static struct ocl_kernel *kernel_of(cl_kernel handle, cl_device_id device)
{
    struct ocl_kernel *kernel = find_or_add_kernel(handle);
    uint32_t epoch = atomic_load_explicit(&ocl_epoch, memory_order_relaxed);
    if (!kernel || atomic_load_explicit(&kernel->epoch, memory_order_acquire) == epoch)
        return kernel;
    remember_launch_config(kernel, NULL, 0);
    cl_uint arguments = 0;
    OCL_CALL(clGetKernelInfo, handle, CL_KERNEL_NUM_ARGS, sizeof arguments, &arguments, NULL);
    atomic_store_explicit(&kernel->argument_count, arguments, memory_order_relaxed);
    /* Threads that come here together write the same. */
    atomic_store_explicit(&kernel->name, kernel_name_id(handle), memory_order_relaxed);
    atomic_store_explicit(&kernel->local_bytes, memory_of(handle, device, CL_KERNEL_LOCAL_MEM_SIZE),
                          memory_order_relaxed);
    atomic_store_explicit(&kernel->private_bytes,
                          memory_of(handle, device, CL_KERNEL_PRIVATE_MEM_SIZE),
                          memory_order_relaxed);
    atomic_store_explicit(&kernel->epoch, epoch, memory_order_release);
    return kernel;
}

/* ---- the same launch again -------------------------------------------------------------------
 *
 * A kernel that is launched with the arguments of one of the two launches before it in its queue
 * works on what they have left: pieces of work have arguments, or an offset, of their own. */

#define MOST_BYTES 256 /* of an argument */

static uint64_t add_to_hash(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static void note_argument(cl_kernel handle, cl_uint index, size_t size, const void *value)
{
    struct ocl_kernel *kernel = index < OCL_ARGUMENTS ? find_or_add_kernel(handle) : NULL;
    uint64_t hash = add_to_hash(index, size);
    if (!kernel)
        return;
    for (size_t at = 0; value && size <= MOST_BYTES && at < size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = size - at;
        memcpy(&word, (const char *)value + at, left < sizeof word ? left : sizeof word);
        hash = add_to_hash(hash, word);
    }
    atomic_store_explicit(&kernel->arguments[index], size <= MOST_BYTES || !value ? hash | 1 : 0,
                          memory_order_relaxed);
}

static void forget_arguments(struct ocl_kernel *kernel)
{
    for (unsigned i = 0; i < OCL_ARGUMENTS; i++)
        atomic_store_explicit(&kernel->arguments[i], 0, memory_order_relaxed);
}

/* 0: not known. */
static uint64_t launch_hash(const struct ocl_kernel *kernel, cl_uint dimensions,
                            const size_t *offset)
{
    uint32_t count = atomic_load_explicit(&kernel->argument_count, memory_order_relaxed);
    uint64_t hash = (uintptr_t)kernel;
    for (unsigned i = 0; i < count; i++) {
        uint64_t argument = i < OCL_ARGUMENTS
                                ? atomic_load_explicit(&kernel->arguments[i], memory_order_relaxed)
                                : 0;
        if (!argument)
            return 0;
        hash = add_to_hash(hash, argument);
    }
    for (unsigned i = 0; offset && i < dimensions; i++)
        hash = add_to_hash(hash, offset[i] ? offset[i] + i : 0);
    return count ? hash | 1 : 0;
}

static bool is_launched_again(struct ocl_queue *queue, const struct ocl_kernel *kernel,
                              cl_uint dimensions, const size_t *offset)
{
    if (!queue || !kernel)
        return false;
    uint64_t hash = launch_hash(kernel, dimensions, offset);
    uint64_t last = atomic_load_explicit(&queue->launched[0], memory_order_relaxed);
    uint64_t before = atomic_load_explicit(&queue->launched[1], memory_order_relaxed);
    atomic_store_explicit(&queue->launched[1], last, memory_order_relaxed);
    atomic_store_explicit(&queue->launched[0], hash, memory_order_relaxed);
    return hash && (hash == last || hash == before);
}

/* Query the driver again at the next launch: the object ends, is new, or an argument changed. */
static void kernel_stale(cl_kernel handle)
{
    struct ocl_kernel *kernel = known_kernel(handle);
    if (kernel)
        atomic_store_explicit(&kernel->epoch, 0, memory_order_release);
}

static void kernel_is_new(cl_kernel handle)
{
    struct ocl_kernel *kernel = known_kernel(handle);
    kernel_stale(handle);
    if (kernel)
        forget_arguments(kernel);
}

void ocl_kernel_forked(void)
{
    ocl_table_forked(&kernels);
}

/* ---- the configuration ----------------------------------------------------------------------- */

static uint32_t clamp(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void shape(struct wire_config *config, cl_uint dimensions, const size_t *global,
                  const size_t *local)
{
    for (unsigned i = 0; i < 3; i++) {
        uint64_t items = i < dimensions ? (global ? global[i] : 0) : 1;
        uint64_t group = i < dimensions ? (local ? local[i] : 0) : (local ? 1 : 0);
        config->block[i] = clamp(group);
        config->grid[i] = clamp(group ? (items + group - 1) / group : items);
        if (group && items % group)
            config->head.flags |= WIRE_CONFIG_RAGGED;
    }
    if (!local)
        config->head.flags |= WIRE_CONFIG_RUNTIME_CHOSEN;
}

/* The configuration's id, by way of the description where the kernel's last one does not serve. */
static uint32_t config_of(struct ocl_kernel *kernel, cl_uint dimensions, const size_t *global,
                          const size_t *local)
{
    uint64_t sizes[SIZES];
    sizes_of(sizes, dimensions, global, local);
    uint32_t id = kernel ? recall_launch_config(kernel, sizes) : 0;
    if (id)
        return id;
    struct wire_config config = {.head = {sizeof config, WIRE_CONFIG, 0, 0}};
    shape(&config, dimensions, global, local);
    if (!kernel)
        return collector_config(&config);
    uint64_t local_bytes = atomic_load_explicit(&kernel->local_bytes, memory_order_relaxed);
    uint64_t private_bytes = atomic_load_explicit(&kernel->private_bytes, memory_order_relaxed);
    config.name = atomic_load_explicit(&kernel->name, memory_order_relaxed);
    if (local_bytes != UINT64_MAX) {
        config.head.flags |= WIRE_CONFIG_HAS_SHARED;
        config.shared_static = clamp(local_bytes);
    }
    if (private_bytes != UINT64_MAX) {
        config.head.flags |= WIRE_CONFIG_HAS_LOCAL;
        config.local_per_thread = clamp(private_bytes);
    }
    id = collector_config(&config);
    remember_launch_config(kernel, sizes, id);
    return id;
}

static void end_launch(struct ocl_command *command, cl_int result, uint32_t config, uint8_t flags)
{
    union ocl_record record = {.kernel = {.head = {sizeof record.kernel, WIRE_KERNEL, flags, 0}}};
    record.kernel.config = config;
    ocl_end(command, result, &record, false);
}

static cl_int end_kernel(struct ocl_command *command, cl_int result, cl_kernel handle,
                         cl_uint dimensions, const size_t *offset, const size_t *global,
                         const size_t *local)
{
    if (!command->call.on)
        return result;
    int saved = errno;
    uint32_t config = 0;
    bool again = false;
    if (result == CL_SUCCESS) {
        struct ocl_queue *queue = command->queue;
        cl_device_id device = queue && queue->device ? queue->device->handle : NULL;
        struct ocl_kernel *kernel = kernel_of(handle, device);
        config = config_of(kernel, dimensions, global, local);
        again = is_launched_again(queue, kernel, dimensions, offset);
    }
    end_launch(command, result, config, again ? WIRE_SAME : 0);
    errno = saved;
    return result;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

OCL_COMMAND(clEnqueueNDRangeKernel,
            (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
             const size_t *global, const size_t *local, OCL_WAITS),
            (queue, kernel, dimensions, offset, global, local),
            end_kernel(&command, result, kernel, dimensions, offset, global, local))

static const size_t one[3] = {1, 1, 1};
OCL_COMMAND(clEnqueueTask, (cl_command_queue queue, cl_kernel kernel, OCL_WAITS), (queue, kernel),
            end_kernel(&command, result, kernel, 1, NULL, one, one))

cl_int CL_API_CALL ocl_clEnqueueNativeKernel(cl_command_queue queue,
                                             void(CL_CALLBACK *function)(void *), void *arguments,
                                             size_t bytes, cl_uint objects, const cl_mem *list,
                                             const void **places, cl_uint waits,
                                             const cl_event *wait_list, cl_event *event)
{
    struct ocl_command command;
    ocl_begin(&command, OCL_clEnqueueNativeKernel, queue, event);
    cl_int result = OCL_TIMED(&command.call, clEnqueueNativeKernel, queue, function, arguments,
                              bytes, objects, list, places, waits, wait_list, command.event);
    if (command.call.live && result == CL_SUCCESS)
        ocl_note_read((const void *)1, UINTPTR_MAX - 1); /* a function may write anywhere */
    if (command.call.on) {
        struct wire_config config = {.head = {sizeof config, WIRE_CONFIG, 0, 0},
                                     .name = collector_text("native"),
                                     .grid = {1, 1, 1},
                                     .block = {1, 1, 1}};
        end_launch(&command, result, collector_config(&config), 0);
    }
    return result;
}

cl_kernel CL_API_CALL ocl_clCreateKernel(cl_program program, const char *name, cl_int *error)
{
    cl_kernel kernel = OCL_CALL(clCreateKernel, program, name, error);
    kernel_is_new(kernel);
    return kernel;
}

cl_int CL_API_CALL ocl_clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel *list,
                                                cl_uint *count)
{
    cl_uint made = 0;
    cl_int result = OCL_CALL(clCreateKernelsInProgram, program, room, list, &made);
    for (cl_uint i = 0; list && result == CL_SUCCESS && i < made && i < room; i++)
        kernel_is_new(list[i]);
    if (count && result == CL_SUCCESS)
        *count = made;
    return result;
}

cl_kernel CL_API_CALL ocl_clCloneKernel(cl_kernel kernel, cl_int *error)
{
    cl_kernel copy = OCL_CALL(clCloneKernel, kernel, error);
    kernel_is_new(copy);
    return copy;
}

cl_int CL_API_CALL ocl_clReleaseKernel(cl_kernel kernel)
{
    if (ocl_on())
        ocl_harvest_all(4 * OCL_POLL_EVERY); /* an event of ours may keep the object alive */
    kernel_stale(kernel); /* before: the handle may be another thread's new one right after */
    return OCL_CALL(clReleaseKernel, kernel);
}

cl_int CL_API_CALL ocl_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size,
                                      const void *value)
{
    if (!value)
        kernel_stale(kernel);
    cl_int result = OCL_CALL(clSetKernelArg, kernel, index, size, value);
    if (result == CL_SUCCESS)
        note_argument(kernel, index, size, value);
    return result;
}
