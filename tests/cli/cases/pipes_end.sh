# perfkit waits for what the program left behind, but a pipe ends when the program's copies close,
# and a lock on an inherited descriptor goes with the program.
start=$(date +%s)
perfkit run -q -- target daemon 8 |
  { cat; [ $(($(date +%s) - start)) -lt 8 ] && echo "the pipe ended at once"; }
(
  flock 9
  exec perfkit run -q --wait=all -o lock.sqlite -- target daemon 6 >left
) 9>lock &
job=$!
until [ -s left ] && flock -n lock true || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
cat left
kill -0 $job # perfkit still waits
echo "lock free: $?"
wait
# A reader that goes away: the program gets SIGPIPE, not perfkit.
perfkit run -q -- sh -c 'while :; do echo y; done' | head -n 1
