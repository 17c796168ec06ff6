# Processes that the program leaves behind: waited for, or not, or until somebody asks to end. What
# is compared with the clock lasts longer than any machine is slow.
since() { echo $((($(date +%s%N) - start) / 1000000)); }
between() { [ "$1" -ge "$2" ] && [ "$1" -lt "$3" ] && echo in time || echo "$1 ms"; }
start=$(date +%s%N)
perfkit run -q -- target daemon 2 >/dev/null
between "$(since)" 1900 1000000
start=$(date +%s%N)
perfkit run -q --wait=primary -- target daemon 40 &
wait $!
between "$(since)" 0 38000
start=$(date +%s%N)
perfkit run -o asked.sqlite -- sh -c 'target daemon 40; exit 7' 2>err &
job=$!
until grep -q 'still run and are recorded' err 2>/dev/null; do sleep 0.1; done
kill -INT $job
wait $job
echo $?
between "$(since)" 1000 38000
grep -c 'still run and are recorded' err
# (a sanitizer build records with a stand-in that knows no processes)
command -v sqlite3 >/dev/null && [ -z "${PERFKIT_COLLECTOR-}" ] || { echo running; exit; }
sqlite3 asked.sqlite "SELECT DISTINCT end_reason FROM process WHERE end_reason = 'running'"
