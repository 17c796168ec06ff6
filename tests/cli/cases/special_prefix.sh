# perfkit finds what is installed with it also where its folder's name reads like a pattern.
[ -n "${PERFKIT_BUILD-}" ] || { echo 'run by ctest only: it copies from the build folder'; exit 77; }
unset PERFKIT_COLLECTOR
for folder in 'v[1]' 'a*' 'b\c' 'q?'; do
  mkdir -p "$folder/bin" "$folder/lib"
  cp "$PERFKIT_BUILD/bin/perfkit" "$folder/bin"
  cp "$PERFKIT_BUILD/lib/libperfkit_collector.so" "$folder/lib"
  "$folder/bin/perfkit" run -q --no-preload -o c.sqlite -f -- "$HELPERS/target-static" exit 3
  echo "$folder: $?"
done
