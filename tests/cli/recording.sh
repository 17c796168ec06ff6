# Sourced by the cases of `perfkit recover`: a program that is recorded until end_program. It has a
# process, and what it waits for lies outside the folder of the case.
program='echo $$ >"$SCRATCH/started"; exec cat "$SCRATCH/end"'
# With the options given; returns when the program runs.
record() {
  rm -f "$SCRATCH/started" "$SCRATCH/end"
  mkfifo "$SCRATCH/end"
  perfkit run -q "$@" -- sh -c "$program" &
  job=$!
  until [ -s "$SCRATCH/started" ]; do sleep 0.05; done
}
program_runs() { grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$(cat "$SCRATCH/started")/status" 2>/dev/null; }
end_program() {
  : >"$SCRATCH/end"
  while program_runs; do sleep 0.05; done
}
kill_perfkit() { { kill -9 $job; wait $job; } 2>/dev/null; }
