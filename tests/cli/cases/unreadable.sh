# A capture, or a file beside it, that one may not read: told alike and with one status everywhere.
perfkit run -q -o a.sqlite -- true
cp a.sqlite closed.sqlite
cp a.sqlite part.sqlite
printf '\002\002' | dd of=part.sqlite bs=1 seek=18 conv=notrunc 2>/dev/null # in WAL mode
echo more >part.sqlite-wal
chmod 000 closed.sqlite part.sqlite-wal
as_nobody=
perfkit=perfkit
if [ "$(id -u)" = 0 ]; then
  # root may read everything: try as nobody, by a copy (the build may lie in a folder closed to others)
  command -v setpriv >/dev/null || { echo "no setpriv"; exit 77; }
  mkdir -p "$SCRATCH/copy/bin"
  cp "$(command -v perfkit)" "$SCRATCH/copy/bin"
  perfkit="$SCRATCH/copy/bin/perfkit"
  as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
  chmod 755 "$SCRATCH"
  chmod 777 .
fi
try() { $as_nobody "$perfkit" "$@" 2>&1; echo "$?"; }
for file in closed.sqlite part.sqlite; do
  try report $file
  try report $file a.sqlite --html page.html
  try top --once $file
  try diff a.sqlite $file
  try merge a.sqlite $file -o merged.sqlite
  try export $file --format nsys nsys.sqlite
  try export $file --format parquet parquet
  try symbolize $file
  try baseline save main $file
done
try import closed.sqlite -o imported.sqlite
ls
