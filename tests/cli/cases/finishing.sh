# While the capture is being finished (held up by a reader here): one request to end is answered,
# the second leaves at once with the program's status, and recover does the rest.
command -v sqlite3 >/dev/null || { echo 'no sqlite3 to play the reader'; exit 77; }
mkdir spools
mkfifo gate words
state() { sqlite3 -readonly a.sqlite 'SELECT state FROM capture' 2>/dev/null; } # which makes no file
begin() { # perfkit, a reader in the middle of a transaction, and a capture that is to be finished
  perfkit run --spool-dir=spools -f -o a.sqlite -- sh -c 'read line <gate; exit 5' 2>err &
  job=$!
  until [ "$(state)" = recording ]; do sleep 0.1; done
  rm -f read
  sqlite3 a.sqlite <words >read &
  reader=$!
  exec 4>words
  printf '.timeout 60000\nBEGIN;\nSELECT state FROM capture;\n' >&4
  until [ -s read ]; do sleep 0.1; done
  echo go >gate
}
end_reader() {
  exec 4>&-
  wait $reader
}
# For three seconds it tries to join the files: where that was too short to ask twice, again.
ask_twice() {
  begin
  until [ "$(state)" != recording ]; do :; done
  kill -INT $job
  until grep -q 'once more' err || [ ! -e /proc/$job/exe ]; do sleep 0.05; done
  kill -INT $job
  wait $job
  status=$?
}
for try in 1 2 3 4 5 6 7 8 9 10; do
  ask_twice 2>/dev/null
  grep -q 'left:' err && break
  end_reader
done
echo "left: $status"
sed 's|/[^ ]*/perfkit-[A-Za-z0-9]*|DIR|' err
end_reader
perfkit recover -q spools/*
echo "recovered: $?"
sqlite3 a.sqlite 'PRAGMA integrity_check; SELECT exit_status FROM capture'
# A reader that stays: the capture is whole all the same, and the next report joins its files.
begin
wait $job
echo "with a reader: $?"
grep -c 'keep both together' err
ls a.sqlite* | tr '\n' ' '
end_reader
perfkit report a.sqlite >/dev/null 2>&1
echo "report: $?"
ls a.sqlite*
