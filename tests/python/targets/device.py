"""An OpenCL device by ctypes: something for Python to call that perfkit records."""
import ctypes
import sys

POINTER = ctypes.c_void_p


class Device:
    def __init__(self):
        try:
            self.cl = ctypes.CDLL("libOpenCL.so.1")
        except OSError:
            sys.exit(77)
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
            getattr(self.cl, name).restype = POINTER
        platform, device = POINTER(), POINTER()
        if self.cl.clGetPlatformIDs(1, ctypes.byref(platform), None) or \
                self.cl.clGetDeviceIDs(platform, ctypes.c_uint64(0xFFFFFFFF), 1, ctypes.byref(device), None):
            sys.exit(77)
        self.context = POINTER(self.cl.clCreateContext(None, 1, ctypes.byref(device), None, None, None))
        self.queue = POINTER(self.cl.clCreateCommandQueue(self.context, device, ctypes.c_uint64(0), None))
        self.buffer = POINTER(self.cl.clCreateBuffer(self.context, ctypes.c_uint64(1),
                                                     ctypes.c_size_t(4096), None, None))
        self.data = ctypes.create_string_buffer(4096)

    def arguments(self, size=4096):
        """Of clEnqueueWriteBuffer."""
        return (self.queue, self.buffer, 1, ctypes.c_size_t(0), ctypes.c_size_t(size), self.data, 0,
                None, None)

    def write(self, size=4096):
        return self.cl.clEnqueueWriteBuffer(*self.arguments(size))

    def wait(self):
        return self.cl.clFinish(self.queue)
