# Processes that the program leaves behind: waited for, or not, or until somebody asks to end. They end
# when the FIFO `end` is opened for writing, which shows that they were there until then.
mkfifo end
start=$(date +%s%N)
perfkit run -q -- target daemon 2 >/dev/null
[ $((($(date +%s%N) - start) / 1000000)) -ge 1900 ] && echo waited
perfkit run -q --wait=primary -- target daemon end &
wait $!
: >end && echo "it still ran"
perfkit run -o asked.sqlite -- sh -c 'target daemon end; exit 7' 2>err &
job=$!
until grep -q 'still run and are recorded' err 2>/dev/null; do sleep 0.1; done
kill -INT $job
wait $job
echo $?
: >end && echo "it still ran"
grep -c 'still run and are recorded' err
# (a sanitizer build records with a stand-in that knows no processes)
command -v sqlite3 >/dev/null && [ -z "${PERFKIT_COLLECTOR-}" ] || { echo running; exit; }
sqlite3 asked.sqlite "SELECT DISTINCT end_reason FROM process WHERE end_reason = 'running'"
