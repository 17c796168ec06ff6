# Lists are added to, single variables are taken over, and what is left out is said in the capture.
show() { grep -E '^(LD_PRELOAD|OPENCL_LAYERS|CUDA_INJ|NVTX_INJ|PERFKIT_OPTIONS)' | grep -v CUDA | sort | sed "s|+cuda||;s|[^:=]*/lib[0-9]*/[^:]*collector.so|COLLECTOR|g"; }
notes() { command -v sqlite3 >/dev/null || return; sqlite3 "$1" "SELECT item, note FROM capture_health WHERE note LIKE '%$2%'" | sed 's|/[^ ]*/|DIR/|g'; }
echo plain
perfkit run -q -- env | show
echo lists
LIB=$(find /lib /usr/lib -name 'libm.so.6' | head -n 1)
LD_PRELOAD=$LIB OPENCL_LAYERS=/a.so NVTX_INJECTION64_PATH=/b.so \
  perfkit run -q -o lists.sqlite -- env | show | sed "s|$LIB|LIBM|"
notes lists.sqlite 'replaced it'
ASAN=$(cc -print-file-name=libasan.so 2>/dev/null) # refuses to run behind another library
if [ -f "$ASAN" ] && [ "$(LD_PRELOAD=$ASAN ASAN_OPTIONS=detect_leaks=0 sh -c 'echo ran')" = ran ]; then
  LD_PRELOAD=$ASAN ASAN_OPTIONS=detect_leaks=0 perfkit run -q -o asan.sqlite -- sh -c 'echo ran'
else
  echo ran
fi
echo restricted
perfkit run -q --trace=nvtx --no-preload --spool-limit=8M -o few.sqlite -- env | show
notes few.sqlite 'no-preload'
echo stacks
perfkit run -q --stacks -o all.sqlite -- env | show | grep OPTIONS
perfkit run -q --stacks=launch:10,sync --stack-depth=40 -o some.sqlite -- env | show | grep OPTIONS
echo nested
perfkit run -q -- perfkit run -q -o inner.sqlite -- env | show
