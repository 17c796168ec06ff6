# An installed perfkit works from any prefix and after it was moved; libprof is found by pkg-config.
[ -n "${PERFKIT_BUILD-}" ] || { echo 'run by ctest only: it installs from the build folder'; exit 77; }
unset PERFKIT_COLLECTOR
cmake --install "$PERFKIT_BUILD" --prefix "$SCRATCH/first" >log 2>&1 || tail -n 5 log
mv "$SCRATCH/first" "$SCRATCH/moved"
"$SCRATCH/moved/bin/perfkit" run -q -o sh.sqlite -- "$HELPERS/target-static" exit 0
"$SCRATCH/moved/bin/perfkit" run -q --trace=opencl --no-preload -- sh -c 'echo "$OPENCL_LAYERS"' | sed 's|/lib.*/perfkit/|/LIB/perfkit/|'
ls "$SCRATCH/moved/share/man/man1" | head -n 2
cat >reader.c <<'END'
#include <perfkit/annotate.h>
#include <prof.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct prof_capture *capture;
    struct prof_error err = {0};
    if (argc != 2 || prof_open(argv[1], &capture, &err))
        return fprintf(stderr, "%s\n", err.message) != 0;
    puts(prof_info(capture)->state_text);
    prof_close(capture);
    return 0;
}
END
export PKG_CONFIG_PATH=$(dirname "$(find "$SCRATCH/moved" -name libprof.pc)")
flags=
grep -q 'PERFKIT_SANITIZE:STRING=.' "$PERFKIT_BUILD/CMakeCache.txt" &&
  flags=-fsanitize=$(sed -n 's/^PERFKIT_SANITIZE:STRING=//p' "$PERFKIT_BUILD/CMakeCache.txt")
for header in "$SCRATCH"/moved/include/perfkit/libprof/include/*.h; do # each stands for itself
  echo "#include <$(basename "$header")>" >one.c
  cc -Wall -Werror -fsyntax-only $(pkg-config --cflags libprof) one.c || echo "$header"
  c++ -Wall -Werror -fsyntax-only $(pkg-config --cflags libprof) -x c++ one.c || echo "$header, C++"
done
cc $flags reader.c $(pkg-config --cflags --libs libprof) -o reader && ./reader sh.sqlite
