# `cpack -G DEB` and `cpack -G RPM`, in a build for /usr (preset "package"): perfkit, perfkit-measure, libprof0, libprof-dev,
# python3-perfkit. They name no licence.
set(PERFKIT_CONTACT "perfkit maintainers <maintainers@perfkit.example>" CACHE STRING
  "who answers for the packages: NAME <ADDRESS>")

set(CPACK_PACKAGE_NAME perfkit)
set(CPACK_PACKAGE_VENDOR perfkit)
set(CPACK_PACKAGE_CONTACT ${PERFKIT_CONTACT})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL perfkit measure library development python)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)

# package(COMPONENT NAME SECTION SUMMARY TEXT): the text's lines have at most 78 columns.
function(package component name section summary text)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  string(REGEX REPLACE "-dev$" "-devel" rpm ${name})
  set(CPACK_RPM_${upper}_PACKAGE_NAME ${rpm} PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_SUMMARY ${summary} PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_DESCRIPTION ${text} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  install(FILES ${PROJECT_BINARY_DIR}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name}
    COMPONENT ${component})
endfunction()

# What Debian wants to find beside each package.
string(TIMESTAMP _now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/changelog "perfkit (${PROJECT_VERSION}) unstable; urgency=medium

  * See CHANGELOG.md in the folder of the package perfkit.

 -- ${PERFKIT_CONTACT}  ${_now}
")
execute_process(COMMAND gzip -9nf ${PROJECT_BINARY_DIR}/changelog)

package(perfkit perfkit devel "profiler for programs that use a GPU"
"perfkit records what a program does on a GPU (CUDA, OpenCL, NVTX), keeps it
in one SQLite file and explains where the time goes: findings with bounds,
timelines, call stacks, memory, iterations, comparisons for CI.")
package(measure perfkit-measure devel "measures what GPUs can do, for perfkit"
"What `perfkit device --measure` starts: kernels that measure bandwidth and
arithmetic of a device, and what perfkit's recording costs. It needs OpenCL.")
package(library libprof0 libs "library that reads perfkit's captures"
"What perfkit's Python package and other programs load to open a capture and
to read it by SQL: the functions that stay as they are.")
package(development libprof-dev libdevel "library that reads perfkit's captures, to compile with"
"Headers, the static library with all analyses, files for pkg-config and
CMake; and perfkit/annotate.h, for programs that want to be recorded.")
package(python python3-perfkit python "captures of perfkit in Python"
"Kernels, ranges, iterations and findings of a capture as NumPy arrays, or as
lists where NumPy is not installed; a plugin for pytest that compares tests
with a baseline. Nothing is compiled.")

set(_same "(= ${PROJECT_VERSION})")
find_program(PERFKIT_SHLIBDEPS dpkg-shlibdeps)
find_program(PERFKIT_FILE file) # which CPack needs for it
if(PERFKIT_SHLIBDEPS AND PERFKIT_FILE)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
else()
  set(_depends "libc6, libcjson1, libsqlite3-0, libstdc++6, zlib1g")
  if(YAJL_FOUND)
    string(APPEND _depends ", libyajl2")
  endif()
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS ${_depends})
  if(LIBDW_FOUND)
    string(APPEND _depends ", libdw1, libelf1")
  endif()
  if(NCURSES_FOUND)
    string(APPEND _depends ", libncursesw6, libtinfo6")
  endif()
  set(CPACK_DEBIAN_PERFKIT_PACKAGE_DEPENDS ${_depends})
  set(CPACK_DEBIAN_MEASURE_PACKAGE_DEPENDS "libc6, ocl-icd-libopencl1")
endif()
set(CPACK_DEBIAN_PERFKIT_PACKAGE_RECOMMENDS "perfkit-measure ${_same}")
set(CPACK_DEBIAN_PERFKIT_PACKAGE_SUGGESTS "pocl-opencl-icd, gnuplot-nox, libmicrohttpd12t64 | libmicrohttpd12")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libprof0 ${_same}, libcjson-dev, libsqlite3-dev, zlib1g-dev")
if(YAJL_FOUND)
  string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libyajl-dev")
endif()
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3:any, libprof0 (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "perfkit, python3-pandas, python3-pytest")
# CPack would call ldconfig in scripts, as Debian did until 2015; it does not where scripts are given, and files that are not
# there are left out.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
  "${PROJECT_SOURCE_DIR}/packaging/triggers;${PROJECT_BINARY_DIR}/none/postinst;${PROJECT_BINARY_DIR}/none/postrm")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_RPM_PACKAGE_LICENSE "not chosen")
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_PYTHON_PACKAGE_ARCHITECTURE noarch)
set(CPACK_RPM_PYTHON_PACKAGE_REQUIRES "python3, libprof0 >= ${PROJECT_VERSION}")
set(CPACK_RPM_DEVELOPMENT_PACKAGE_REQUIRES "libprof0 = ${PROJECT_VERSION}")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
  /usr/lib/python3 /usr/lib/python3/dist-packages /usr/share/man /usr/share/man/man1
  /usr/share/zsh /usr/share/zsh/site-functions /usr/share/zsh/vendor-completions /usr/share/fish
  /usr/share/fish/vendor_completions.d /usr/share/bash-completion /usr/share/bash-completion/completions
  /usr/libexec /usr/lib/pkgconfig /usr/lib/cmake /usr/lib/x86_64-linux-gnu)
include(CPack)
