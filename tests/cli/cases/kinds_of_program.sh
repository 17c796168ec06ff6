# What cannot be preloaded still runs, and the capture says what is missing.
notes() { command -v sqlite3 >/dev/null && sqlite3 "$1" "SELECT note FROM capture_health WHERE item = 'preload' AND note IS NOT NULL" | sed 's|/[^ ]*/|DIR/|g'; }
command -v sqlite3 >/dev/null || { echo 'no sqlite3 to look into the capture'; exit 77; }
perfkit run -q -o static.sqlite -- target-static exit 5
echo $?
notes static.sqlite
sqlite3 static.sqlite "SELECT item, note FROM capture_health WHERE subject = 'end'"
# A static program that opens a library itself, as NVTX does: its second libc is only half alive.
echo 'int main(void) { perfkit_range_push("a"); perfkit_range_pop(); return 7; }' >b.c
if cc -static -I "$(dirname "$0")/../../../libprof/include" -include perfkit/annotate.h b.c -o opens \
  -ldl 2>/dev/null; then
  perfkit run -q -- ./opens
  echo $?
else
  echo 7
fi
echo 'int main(void) { return 6; }' >a.c
if cc -fsanitize=address a.c -o with-asan 2>/dev/null && ./with-asan; [ $? = 6 ]; then
  perfkit run -q -- ./with-asan
  echo $?
  notes with-asan.sqlite | sed 's/libasan.so.[0-9]*/libasan.so/'
  printf '#!%s/with-asan\n' "$PWD" >script
  chmod +x script
  perfkit run -q -- ./script
  echo $?
else
  echo 6; echo 'not loaded: DIR/with-asan needs libasan.so, which must be loaded first; how processes end and short-lived children are not seen'; echo 6
fi
