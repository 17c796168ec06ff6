. "$(dirname "$0")/../recording.sh"
# SIGKILL to perfkit, then to the program; returns when both have ended.
kill_both() {
  kill_perfkit
  kill -9 "$(cat "$SCRATCH/started")"
  while program_runs; do sleep 0.05; done
}
# After a SIGKILL the spool folder is found by its capture.
record -o a.sqlite
perfkit recover 2>&1 | grep -c "$PWD/a.sqlite"
kill_both
perfkit recover 2>/dev/null | grep "$PWD/a.sqlite" | sed 's|^.*\t|FOLDER |'
perfkit report a.sqlite 2>&1 >/dev/null | sed 's|recover /.*perfkit-|recover .../perfkit-|; s/perfkit-[A-Za-z0-9]*`/FOLDER`/'
perfkit recover -q a.sqlite
echo $?
perfkit recover a.sqlite
echo $?
perfkit recover 2>&1 | grep -c "$PWD/a.sqlite"
true
# Of --spool-dir: by the capture that names it, by that folder, in the list of the working folder.
mkdir spools
for way in a.sqlite spools; do
  record -f -o a.sqlite --spool-dir=spools
  kill_both
  perfkit recover 2>/dev/null | sed -n "s|^$PWD/spools/perfkit-......\t|FOLDER |p"
  perfkit recover "$way" 2>/dev/null | sed 's|^.*\t|FOLDER |'
  [ $way = spools ] && perfkit recover -q spools/*
  ls spools
done
# Killed before the program was started: with the lock, without it.
mkdir -p spools/perfkit-aaaaaa spools/perfkit-bbbbbb spools/perfkit-notours spools/perfkit-cccccc
touch spools/perfkit-aaaaaa/owner spools/perfkit-cccccc/something
touch -d '1 minute ago' spools/*
perfkit recover spools 2>/dev/null | sort
perfkit recover spools/perfkit-aaaaaa
perfkit recover spools/perfkit-bbbbbb
ls spools
# Nothing waits for the other end of a FIFO.
mkdir fifos
mkfifo fifos/owner fifos/capture a.fifo
perfkit recover fifos
perfkit recover a.fifo
rm fifos/owner
touch fifos/owner
perfkit recover fifos
perfkit run -q -f -o a.fifo -- true
perfkit report a.fifo
true
