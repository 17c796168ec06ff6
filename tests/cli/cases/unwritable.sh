# Known before the program starts: it does not run.
try() { "$@"; echo "$?"; }
try perfkit run -o /proc/capture.sqlite -- echo ran
try perfkit run -o no/such/folder.sqlite -- echo ran
try perfkit run -o "$(printf 'n%.0s' $(seq 300))" -- echo ran 2>&1 | sed 's/n\{300\}/LONG/'
try perfkit run --spool-dir=/no/such -- echo ran
try perfkit run --spool-dir=/proc -- echo ran
PERFKIT_COLLECTOR=/no/such.so try perfkit run -- echo ran
PERFKIT_COLLECTOR=/ try perfkit run -- echo ran
if [ "$(id -u)" = 0 ]; then
  # root may write everywhere: try as nobody
  mkdir -m 755 closed
  chmod 755 "$SCRATCH" .
  # a copy, because the build may lie in a folder that is closed to others (/root)
  bin=$(dirname "$(command -v perfkit)")
  mkdir -p "$SCRATCH/copy/bin" "$SCRATCH/copy/lib"
  cp "$bin/perfkit" "$SCRATCH/copy/bin"
  cp "$bin/../lib/libperfkit_collector.so" "$SCRATCH/copy/lib"
  cd closed
  command -v setpriv >/dev/null &&
    setpriv --reuid=65534 --regid=65534 --clear-groups "$SCRATCH/copy/bin/perfkit" run -- echo ran
else
  mkdir -m 555 closed
  cd closed
  perfkit run -- echo ran
fi
echo $?
