# What perfkit and the reference programs share: the language, warnings, sanitizers, and what kernels are
# compiled for.
option(PERFKIT_WERROR "treat warnings as errors" OFF)

get_filename_component(PERFKIT_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

# Warnings and the language, for every C target. Includes are written from the root.
add_library(perfkit_flags INTERFACE)
target_compile_options(perfkit_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -fno-common>)
target_compile_definitions(perfkit_flags INTERFACE _GNU_SOURCE)
target_include_directories(perfkit_flags INTERFACE ${PERFKIT_ROOT})
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
target_include_directories(perfkit_annotate INTERFACE ${PERFKIT_ROOT}/libprof/include)

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)

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

find_program(PERFKIT_NVCC nvcc HINTS ${CUDA_HOME} $ENV{CUDA_HOME} /usr/local/cuda PATH_SUFFIXES bin)
if(PERFKIT_NVCC)
  set(_kernels_default ON)
else()
  set(_kernels_default OFF)
endif()
option(PERFKIT_CUDA_KERNELS "build the CUDA kernels (needs nvcc)"
  ${_kernels_default})
if(PERFKIT_CUDA_KERNELS)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 75 80 90)
  endif()
  set(CMAKE_CUDA_COMPILER ${PERFKIT_NVCC} CACHE FILEPATH "nvcc")
  enable_language(CUDA)
  message(STATUS "CUDA kernels: built with ${PERFKIT_NVCC}")
elseif(PERFKIT_NVCC)
  message(STATUS "CUDA kernels: left out (PERFKIT_CUDA_KERNELS=OFF)")
else()
  message(STATUS "CUDA kernels: left out (no nvcc found; set CUDA_HOME)")
endif()
