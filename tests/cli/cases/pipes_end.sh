# perfkit waits for what the program left behind, but a pipe ends when the program's copies close,
# and a lock on an inherited descriptor goes with the program.
start=$(date +%s)
perfkit run -q -- target daemon 3 |
  { cat; [ $(($(date +%s) - start)) -lt 3 ] && echo "the pipe ended at once"; }
(
  flock 9
  exec perfkit run -q --wait=all -o lock.sqlite -- target daemon 2
) 9>lock &
sleep 0.7
flock -n lock true
echo "lock free: $?"
wait
# A reader that goes away: the program gets SIGPIPE, not perfkit.
perfkit run -q -- sh -c 'while :; do echo y; done' | head -n 1
