# Signals sent to perfkit alone are handed on; the program's own ways of ending stay.
start() { # options and command; sets job and target
  rm -f pipe
  mkfifo pipe
  perfkit run -q -f -o a.sqlite -- "$@" >pipe &
  job=$!
  exec 5<pipe
  read -r _ target <&5
}
for signal in INT QUIT HUP USR1 USR2 WINCH; do
  start target signals 20
  kill -$signal $job
  sleep 0.2
  kill -TERM $job
  cat <&5
  wait $job
  echo "$signal: $?"
done
# The default action: perfkit ends as the program did.
start sh -c 'echo ready $$; exec sleep 20'
{ kill -TERM $job; wait $job; } 2>/dev/null
echo "default: $?"
start sh -c 'echo ready $$; exec sleep 20'
{ kill -KILL "$target"; wait $job; } 2>/dev/null
echo "killed: $?"
# Stopped and continued by somebody else, without a terminal: perfkit records on.
start target signals 20
for _ in 1 2 3 4 5; do
  kill -STOP "$target"
  sleep 0.1
  kill -CONT "$target"
  sleep 0.1
done
kill -STOP "$target"
sleep 0.3
cut -d' ' -f3 "/proc/$job/stat" | sed 's/[RDS]/not stopped/'
kill -CONT "$target"
kill -TERM $job
cat <&5 | grep -v CONT # several at once are one
wait $job
echo "stopped: $?"
