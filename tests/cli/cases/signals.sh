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
