# Options and what the machine has. Everything optional is found here, said in one line, and offered
# to the folders as an imported target or a plain variable.
option(PERFKIT_WERROR "treat warnings as errors" OFF)
option(PERFKIT_TESTS "build the tests" ON)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# Warnings and the language, for every C target of ours. Includes are written from the root.
add_library(perfkit_flags INTERFACE)
target_compile_options(perfkit_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -fno-common>)
target_compile_definitions(perfkit_flags INTERFACE _GNU_SOURCE)
target_include_directories(perfkit_flags INTERFACE ${CMAKE_SOURCE_DIR})
if(PERFKIT_WERROR)
  target_compile_options(perfkit_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
set(PERFKIT_SANITIZE "" CACHE STRING "sanitizers, as in -fsanitize=")
if(PERFKIT_SANITIZE)
  target_compile_options(perfkit_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C>:-fsanitize=${PERFKIT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(perfkit_flags INTERFACE -fsanitize=${PERFKIT_SANITIZE})
endif()

add_library(perfkit_annotate INTERFACE)
target_include_directories(perfkit_annotate INTERFACE ${CMAKE_SOURCE_DIR}/libprof/include)

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)

# JSON of any size, for `perfkit import`.
pkg_check_modules(YAJL IMPORTED_TARGET yajl)
if(NOT YAJL_FOUND)
  message(STATUS "import of Chrome traces: left out (no yajl; Debian: libyajl-dev)")
endif()

# elfutils: inlined functions, files and lines of the host's stacks.
pkg_check_modules(LIBDW IMPORTED_TARGET libdw libelf)
if(NOT LIBDW_FOUND)
  message(STATUS "host stacks: function names without lines (no libdw; Debian: libdw-dev)")
endif()

# ncurses, with wide characters: the screen of perfkit top.
pkg_check_modules(NCURSES IMPORTED_TARGET ncursesw)
if(NCURSES_FOUND)
  set(PERFKIT_NCURSES ON)
else()
  set(PERFKIT_NCURSES OFF)
  message(STATUS "perfkit top: only --once and --json (no ncursesw; Debian: libncurses-dev)")
endif()

# OpenCL: headers for the layer (which links no OpenCL library), the loader for programs.
find_path(PERFKIT_OPENCL_INCLUDE CL/cl_layer.h)
pkg_check_modules(OPENCL IMPORTED_TARGET OpenCL)
if(PERFKIT_OPENCL_INCLUDE AND OPENCL_FOUND)
  set(PERFKIT_OPENCL ON)
  message(STATUS "OpenCL: layer and kernels are built")
else()
  set(PERFKIT_OPENCL OFF)
  message(STATUS "OpenCL: left out (no CL/cl_layer.h or no libOpenCL; Debian: ocl-icd-opencl-dev)")
endif()

# CUDA, in two parts. The collector needs only headers: cuda.h and CUPTI's, from a toolkit or from
# the wheels of a PyTorch install. The kernels need nvcc.
file(GLOB _wheel_cuda_dirs /usr/lib/python3*/*-packages/nvidia/*/include
  /usr/local/lib/python3*/*-packages/nvidia/*/include)
find_path(PERFKIT_CUDA_INCLUDE cuda.h
  HINTS ${CUDA_HOME} $ENV{CUDA_HOME} /usr/local/cuda PATH_SUFFIXES include
  PATHS ${_wheel_cuda_dirs})
find_path(PERFKIT_CUPTI_INCLUDE cupti.h
  HINTS ${CUDA_HOME} $ENV{CUDA_HOME} /usr/local/cuda ${PERFKIT_CUDA_INCLUDE}/..
  PATH_SUFFIXES include extras/CUPTI/include PATHS ${_wheel_cuda_dirs})
if(PERFKIT_CUDA_INCLUDE AND PERFKIT_CUPTI_INCLUDE)
  set(_collector_default ON)
else()
  set(_collector_default OFF)
endif()
option(PERFKIT_CUDA_COLLECTOR "record CUDA programs (needs cuda.h and cupti.h)"
  ${_collector_default})
if(PERFKIT_CUDA_COLLECTOR)
  if(NOT _collector_default)
    message(FATAL_ERROR "PERFKIT_CUDA_COLLECTOR=ON needs cuda.h and cupti.h: set CUDA_HOME")
  endif()
  message(STATUS "CUDA collector: built with the CUPTI headers of ${PERFKIT_CUPTI_INCLUDE}")
else()
  message(STATUS "CUDA collector: left out (no cuda.h with cupti.h found; set CUDA_HOME)")
endif()

find_program(PERFKIT_NVCC nvcc HINTS ${CUDA_HOME} $ENV{CUDA_HOME} /usr/local/cuda PATH_SUFFIXES bin)
if(PERFKIT_NVCC)
  set(_kernels_default ON)
else()
  set(_kernels_default OFF)
endif()
option(PERFKIT_CUDA_KERNELS "build the CUDA kernels of the workloads (needs nvcc)"
  ${_kernels_default})
if(PERFKIT_CUDA_KERNELS)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 75 80 90)
  endif()
  set(CMAKE_CUDA_COMPILER ${PERFKIT_NVCC} CACHE FILEPATH "nvcc")
  enable_language(CUDA)
  message(STATUS "CUDA kernels: built with ${PERFKIT_NVCC}")
else()
  message(STATUS "CUDA kernels: left out (no nvcc found; set CUDA_HOME)")
endif()

if(PERFKIT_TESTS)
  pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
endif()
