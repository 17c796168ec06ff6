# Signals sent to perfkit alone are handed on; the program's own ways of ending stay.
start() { # options and command; sets job and target
  rm -f pipe
  mkfifo pipe
  perfkit run -q -f -o a.sqlite -- "$@" >pipe &
  job=$!
  exec 5<pipe
  read -r _ target <&5 || exit 1
}
next_line() { read -r line <&5 && echo "$line"; } # the program caught a signal
state() { cut -d' ' -f3 "/proc/$1/stat"; }
for signal in INT QUIT HUP USR1 USR2 WINCH; do
  start target signals 300
  kill -$signal $job
  next_line
  kill -TERM $job
  cat <&5
  wait $job
  echo "$signal: $?"
done
# The default action: perfkit ends as the program did.
start sh -c 'echo ready $$; exec sleep 300'
{ kill -TERM $job; wait $job; } 2>/dev/null
echo "default: $?"
start sh -c 'echo ready $$; exec sleep 300'
{ kill -KILL "$target"; wait $job; } 2>/dev/null
echo "killed: $?"
# Stopped and continued by somebody else, without a terminal: perfkit records on.
start target signals 300
for _ in 1 2 3 4 5; do
  kill -STOP "$target"
  until [ "$(state "$target")" = T ]; do sleep 0.05; done
  kill -CONT "$target"
  next_line
done
kill -STOP "$target"
until [ "$(state "$target")" = T ]; do sleep 0.05; done
sleep 0.3 # that perfkit does nothing has no event; a slow perfkit does not fail here
state $job | sed 's/[RDS]/not stopped/'
kill -CONT "$target"
next_line
kill -TERM $job
cat <&5
wait $job
echo "stopped: $?"
