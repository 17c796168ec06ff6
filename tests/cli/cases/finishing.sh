# While the capture is being finished (held up by a reader here): one request to end is answered,
# the second leaves at once with the program's status, and recover does the rest.
command -v sqlite3 >/dev/null || { echo 'no sqlite3 to play the reader'; exit 77; }
mkdir spools
begin() { # perfkit and a reader that keeps its transaction for $1 seconds
  perfkit run --spool-dir=spools -f -o a.sqlite -- sh -c 'sleep 0.7; exit 5' 2>err &
  job=$!
  sleep 0.4
  { echo 'BEGIN; SELECT state FROM capture;'; sleep "$1"; } | sqlite3 a.sqlite &
  reader=$!
}
begin 3
sleep 1
kill -INT $job
sleep 0.3
kill -INT $job
wait $job
echo "left: $?"
sed 's|/[^ ]*/perfkit-[A-Za-z0-9]*|DIR|' err
wait $reader
perfkit recover -q spools/*
echo "recovered: $?"
sqlite3 a.sqlite 'PRAGMA integrity_check; SELECT exit_status FROM capture'
# A reader that stays: the capture is whole all the same, and the next report joins its files.
begin 6
wait $job
echo "with a reader: $?"
grep -c 'keep both together' err
ls a.sqlite* | tr '\n' ' '
wait $reader
perfkit report a.sqlite >/dev/null 2>&1
echo "report: $?"
ls a.sqlite*
