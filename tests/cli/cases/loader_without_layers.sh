# An OpenCL loader that knows no layers (CUDA toolkits bring one) is named, with one that does.
perfkit version | grep -q 'opencl yes' || { echo 'built without OpenCL'; exit 77; }
mkdir old
echo 'int clGetPlatformIDs(void) { return -1001; } int clGetDeviceIDs; int clGetDeviceInfo;' >old.c
cc -shared -fPIC -Wl,-soname,libOpenCL.so.1 old.c -o old/libOpenCL.so.1 || exit 77
export LD_LIBRARY_PATH=$PWD/old
perfkit run -o a.sqlite -- true 2>&1 | grep -o 'opencl.*knows no layers\|loader .* knows no layers'
perfkit doctor | grep -o ' loader .*'
