# perfkit was killed and its program runs on: nothing is thrown away before the user has chosen.
. "$(dirname "$0")/../recording.sh"
mkdir spools
begin() {
  record --spool-dir=spools -o "$1"
  until [ -e "$1" ]; do sleep 0.05; done
  kill_perfkit
}
one=$program
program='cat "$SCRATCH/end" & echo $$ >"$SCRATCH/started"; wait'
begin a.sqlite # of two processes; three before it is read that the child has called exec
perfkit recover spools/* 2>&1 | sed 's/^\(perfkit recover: [0-9] process\(es\)\? of the program still runs\?\).*/\1/; s/: [23] processes/: N processes/'
ls a.sqlite spools | grep -c perfkit-
(sleep 1; : >"$SCRATCH/end") &
perfkit recover -q --follow spools/*
echo "waited: $?"
program_runs && echo "but not until the program had ended"
program=$one
begin b.sqlite
perfkit recover -q --force spools/*
echo "forced: $?"
end_program
# Elsewhere, and never over another file.
begin c.sqlite
end_program
echo mine >d.sqlite
perfkit recover -q -o d.sqlite spools/*
echo "over another file: $?"
perfkit recover -q -o e.sqlite spools/*
echo "elsewhere: $?"
# The file it was writing is gone.
begin f.sqlite
end_program
rm f.sqlite*
perfkit recover -q spools/*
echo "live file gone: $?"
ls
ls spools
perfkit report f.sqlite | grep -c "removed or moved while perfkit recorded"
echo "readable: $?"
# Killed by the program's first act: it had been started, whatever perfkit had done by then.
for i in 1 2 3 4 5; do
  { perfkit run -q --spool-dir=spools -o g.sqlite -- sh -c 'kill -9 $PPID'; } 2>/dev/null
  rm -f g.sqlite*
  perfkit recover -q spools/*
  ls g.sqlite && rm g.sqlite
done
