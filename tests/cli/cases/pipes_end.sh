# perfkit waits for what the program left behind, but a pipe ends when the program's copies close,
# and a lock on an inherited descriptor goes with the program. What is left behind ends when the
# FIFO `end` is opened for writing. A process that has ended has no /proc/PID/exe.
mkfifo pipe end
running() { [ -e /proc/$job/exe ]; }
perfkit run -q -- target daemon end >pipe &
job=$!
cat pipe
running && echo "the pipe ended at once" && : >end
wait $job
(
  flock 9
  exec perfkit run -q --wait=all -o lock.sqlite -- target daemon end >left
) 9>lock &
job=$!
until [ -s left ] && flock -n lock true || ! running; do sleep 0.05; done
cat left
running # perfkit still waits
echo "lock free: $?"
running && : >end
wait $job
# A reader that goes away: the program gets SIGPIPE, not perfkit.
perfkit run -q -- sh -c 'while :; do echo y; done' | head -n 1
