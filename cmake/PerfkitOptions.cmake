# Options and what the machine has. Everything optional is found here and in PerfkitFlags, reported in one
# line, and offered to the folders as an imported target or a plain variable.
option(PERFKIT_TESTS "build the tests and the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(PERFKIT_WORKLOADS "build the reference programs (kernels/, workloads/) and what tests them"
  ${PROJECT_IS_TOP_LEVEL})

include(PerfkitFlags)

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

# libmicrohttpd's headers; the library is loaded when `perfkit serve` runs.
pkg_check_modules(MICROHTTPD libmicrohttpd>=0.9.71)
if(NOT MICROHTTPD_FOUND)
  set(MICROHTTPD_FOUND OFF)
  message(STATUS "perfkit serve: left out (no libmicrohttpd; Debian: libmicrohttpd-dev)")
endif()

# The CUDA collector needs only headers: cuda.h and CUPTI's, from a toolkit or from the wheels of a
# PyTorch install.
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

if(PERFKIT_TESTS)
  pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
endif()
