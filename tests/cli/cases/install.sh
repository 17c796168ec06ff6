# An installed perfkit works from any prefix and after it was moved; libprof is found by pkg-config.
[ -n "${PERFKIT_BUILD-}" ] || { echo 'run by ctest only: it installs from the build folder'; exit 77; }
unset PERFKIT_COLLECTOR
cmake --install "$PERFKIT_BUILD" --prefix "$SCRATCH/first" >log 2>&1 || tail -n 5 log
mv "$SCRATCH/first" "$SCRATCH/moved"
"$SCRATCH/moved/bin/perfkit" run -q -o sh.sqlite -- "$HELPERS/target-static" exit 0
"$SCRATCH/moved/bin/perfkit" run -q --trace=opencl --no-preload -- sh -c 'echo "$OPENCL_LAYERS"' | sed 's|/lib.*/perfkit/|/LIB/perfkit/|'
ls "$SCRATCH/moved/share/man/man1" | head -n 2
export PKG_CONFIG_PATH=$(dirname "$(find "$SCRATCH/moved" -name libprof.pc)")
flags=
grep -q 'PERFKIT_SANITIZE:STRING=.' "$PERFKIT_BUILD/CMakeCache.txt" &&
  flags=-fsanitize=$(sed -n 's/^PERFKIT_SANITIZE:STRING=//p' "$PERFKIT_BUILD/CMakeCache.txt")
for header in "$SCRATCH"/moved/include/perfkit/libprof/include/*.h; do # each stands for itself
  echo "#include <$(basename "$header")>" >one.c
  cc -Wall -Werror -fsyntax-only $(pkg-config --cflags libprof) one.c || echo "$header"
  c++ -Wall -Werror -fsyntax-only $(pkg-config --cflags libprof) -x c++ one.c || echo "$header, C++"
done
echo '#include <perfkit/annotate.h>' >one.c && cc -Wall -Werror -fsyntax-only $(pkg-config --cflags libprof) one.c
source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$PERFKIT_BUILD/CMakeCache.txt")
cc -std=c11 -pedantic -Wall -Wextra -Werror $flags "$source/docs/examples/read_capture.c" \
  $(pkg-config --cflags --libs libprof) -o reader && ./reader sh.sqlite | sed 's/.*: //'
nm -g --defined-only "$(pkg-config --variable=libdir libprof)/libprof.a" 2>/dev/null |
  awk 'NF == 3 && $3 !~ /^(prof_|_)/ {print "not its own: " $3}' | head -n 3
