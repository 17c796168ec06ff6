# What `cmake --install` puts where, and the Debian package. perfkit finds its collector relative to
# its own executable, so the prefix may be moved afterwards.
install(TARGETS perfkit RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS perfkit-measure RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/perfkit)
install(DIRECTORY ${PERFKIT_GENERATED_DIR}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${PERFKIT_GENERATED_DIR}/bash/perfkit
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${PERFKIT_GENERATED_DIR}/zsh/_perfkit
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PERFKIT_GENERATED_DIR}/fish/perfkit.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# The pages, laid out as in the tree so that their links hold.
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md CONTRIBUTING.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# libprof for other programs: #include <prof.h>; and perfkit/annotate.h, which links nothing.
# Installed it has no global symbols but prof_*, so that none meets one of the program it is linked to.
set(_own ${CMAKE_BINARY_DIR}/installed/libprof.a)
add_custom_command(OUTPUT ${_own}
  COMMAND sh ${CMAKE_SOURCE_DIR}/cmake/own_symbols.sh ${CMAKE_NM} ${CMAKE_OBJCOPY} $<TARGET_FILE:prof> ${_own}
  DEPENDS prof cmake/own_symbols.sh VERBATIM)
add_custom_target(prof_installed ALL DEPENDS ${_own})
install(FILES ${_own} DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Without libprof.so: -lprof is the static library, which has everything; the shared one is for python/perfkit and its like.
install(TARGETS prof_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
install(DIRECTORY python/perfkit DESTINATION lib/python3/dist-packages FILES_MATCHING PATTERN "*.py")
file(GLOB PERFKIT_HEADERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/libprof/include/prof*.h)
install(FILES ${PERFKIT_HEADERS}
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/perfkit/libprof/include)
install(FILES libprof/base/error.h libprof/base/format.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/perfkit/libprof/base)
install(FILES libprof/gpu/collective_name.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/perfkit/libprof/gpu)
install(DIRECTORY libprof/include/perfkit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
file(RELATIVE_PATH PERFKIT_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(libprof.pc.in libprof.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/libprof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME perfkit)
set(CPACK_PACKAGE_CONTACT "the perfkit maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "records and explains what a program does on a GPU")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ocl-icd-libopencl1")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "pocl-opencl-icd")
find_program(PERFKIT_SHLIBDEPS dpkg-shlibdeps)
if(PERFKIT_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libcjson1, libsqlite3-0, libstdc++6, zlib1g")
  if(YAJL_FOUND)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libyajl2")
  endif()
  if(LIBDW_FOUND)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libdw1, libelf1")
  endif()
  if(NCURSES_FOUND)
    string(APPEND CPACK_DEBIAN_PACKAGE_DEPENDS ", libncursesw6, libtinfo6")
  endif()
endif()
include(CPack)
