/* Fills from C++ as compilers leave it: functions inlined into functions, templates, lambdas,
 * methods, a destructor, the catch of an exception, a call from the standard library. */
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <vector>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

static cl_command_queue queue;
static cl_mem memory;
static const int zero = 0;

#define INLINE static inline __attribute__((always_inline))
#define APART __attribute__((noinline))
#define END __asm__ volatile("" : : : "memory")

namespace device
{
INLINE void enqueue()
{
    clEnqueueFillBuffer(queue, memory, &zero, 4, 0, 64, 0, nullptr, nullptr);
    END;
}

template <typename Kind> INLINE void fill(Kind times)
{
    for (Kind i = 0; i < times; i++)
        enqueue();
}

template <typename Kind> APART void apart(Kind times)
{
    fill(times);
    END;
}
} // namespace device

class guard
{
  public:
    explicit guard(int times) : times_(times)
    {
    }
    ~guard()
    {
        device::fill(times_);
    }
    APART void now() const
    {
        device::fill(times_);
        END;
    }

  private:
    int times_;
};

APART static void with_guard(int times)
{
    guard held(times);
    held.now();
}

APART static void thrower(int times)
{
    guard held(times);
    if (times > 0)
        throw std::runtime_error("expected");
}

APART static void catcher(int times)
{
    try {
        thrower(times);
    } catch (const std::exception &) {
        device::apart<long>(times);
    }
}

APART static void from_library(int times)
{
    std::vector<int> values = {3, 1, 2};
    std::for_each(values.begin(), values.end(), [&](int value) {
        if (value > 1)
            device::fill(times);
    });
    std::function<void(int)> later = [](int n) { device::apart<short>((short)n); };
    later(1);
}

static int open_device()
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int error = clGetPlatformIDs(1, &platform, nullptr);
    if (error == CL_SUCCESS)
        error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
    cl_context context = nullptr;
    if (error == CL_SUCCESS)
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    if (error == CL_SUCCESS)
        queue = clCreateCommandQueue(context, device, 0, &error);
    if (error == CL_SUCCESS)
        memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, &error);
    return error;
}

int main(int argc, char **)
{
    if (open_device() != CL_SUCCESS)
        return 77;
    device::apart(argc);
    with_guard(argc);
    catcher(argc);
    from_library(argc);
    clFinish(queue);
    return 0;
}
