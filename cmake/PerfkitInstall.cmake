# What `cmake --install` puts where, in five components, which are the packages that CPack makes (PerfkitPackages). perfkit
# finds its collector relative to its own executable, so the prefix may be moved afterwards.
include(CMakePackageConfigHelpers)

# The command, with what it loads and starts. Component perfkit, as what other folders install.
install(TARGETS perfkit RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS perfkit-measure RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/perfkit COMPONENT measure)
install(DIRECTORY ${PERFKIT_GENERATED_DIR}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(CODE "file(GLOB _pages \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/perfkit*.1\")
  execute_process(COMMAND gzip -9nf \${_pages})")
install(FILES packaging/completion/perfkit.bash RENAME perfkit
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES packaging/completion/_perfkit
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES packaging/completion/perfkit.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# The pages, laid out as in the tree so that their links hold.
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md CONTRIBUTING.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What programs load while they run: libprof.so.0, the functions of libprof.map.
install(TARGETS prof_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
  NAMELINK_SKIP)

# What they are compiled with: #include <prof.h>; and perfkit/annotate.h, which links nothing. The static library has no
# global symbols but prof_*, so that none meets one of the program it is linked to.
set(_own ${PROJECT_BINARY_DIR}/installed/libprof.a)
add_custom_command(OUTPUT ${_own}
  COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/own_symbols.sh ${CMAKE_NM} ${CMAKE_OBJCOPY} $<TARGET_FILE:prof> ${_own}
  DEPENDS prof ${PROJECT_SOURCE_DIR}/cmake/own_symbols.sh VERBATIM)
add_custom_target(prof_installed ALL DEPENDS ${_own})
# Without libprof.so: -lprof is the static library, which has everything.
install(FILES ${_own} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
file(GLOB PERFKIT_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/libprof/include/prof*.h)
install(FILES ${PERFKIT_HEADERS}
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/perfkit/libprof/include COMPONENT development)
install(FILES libprof/base/error.h libprof/base/format.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/perfkit/libprof/base COMPONENT development)
install(FILES libprof/gpu/collective_name.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/perfkit/libprof/gpu COMPONENT development)
install(DIRECTORY libprof/include/perfkit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.h")
file(RELATIVE_PATH PERFKIT_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(PERFKIT_LINKED sqlite3 cjson z stdc++)
set(PERFKIT_PC_REQUIRES "sqlite3 libcjson zlib")
if(YAJL_FOUND)
  list(APPEND PERFKIT_LINKED yajl)
  string(APPEND PERFKIT_PC_REQUIRES " yajl")
endif()
configure_file(libprof.pc.in libprof.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/libprof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)
configure_package_config_file(packaging/perfkitConfig.cmake.in perfkitConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/perfkit
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(perfkitConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/perfkitConfig.cmake ${PROJECT_BINARY_DIR}/perfkitConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/perfkit COMPONENT development)

set(PERFKIT_PYTHON_DIR lib/python3/dist-packages CACHE STRING "where Python looks, below the prefix")
install(DIRECTORY python/perfkit DESTINATION ${PERFKIT_PYTHON_DIR} COMPONENT python
  FILES_MATCHING PATTERN "*.py")
# What Python's own tools know of the package: its version, and that it is a plugin of pytest.
set(_known ${PROJECT_BINARY_DIR}/python/perfkit-${PROJECT_VERSION}.dist-info)
file(WRITE ${_known}/METADATA "Metadata-Version: 2.1\nName: perfkit\nVersion: ${PROJECT_VERSION}\n")
file(WRITE ${_known}/entry_points.txt "[pytest11]\nperfkit_pytest = perfkit_pytest\n")
install(FILES python/perfkit_pytest.py DESTINATION ${PERFKIT_PYTHON_DIR} COMPONENT python)
install(DIRECTORY ${_known} DESTINATION ${PERFKIT_PYTHON_DIR} COMPONENT python)
