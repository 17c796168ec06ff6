# No command line takes a capture away: not a report that forgot its file's name, not --force while it
# is being recorded.
perfkit run -q -o a.sqlite -- true
cp a.sqlite a.svg
try() { "$@"; echo "$? <- $*"; }
try perfkit report --html a.sqlite
try perfkit report ./a.sqlite --pprof "$PWD/a.sqlite"
try perfkit report a.sqlite --roofline a.svg
cmp a.sqlite a.svg && echo whole
ln a.sqlite hard
try perfkit report a.sqlite --html out --flamegraph out
echo old >old && ln -s old link
try perfkit report a.sqlite --html old --speedscope link
cat old
try perfkit report a.sqlite --html /dev/null --flamegraph /dev/null
ls
echo --- being recorded
perfkit run -q -o live.sqlite -- sleep 600 &
until perfkit ctl status live.sqlite >/dev/null 2>&1; do sleep 0.05; done
try perfkit run -f -o live.sqlite -- echo ran
perfkit recover live.sqlite 2>&1 | sed 's|SCRATCH||; s|^\(perfkit recover: \).*/perfkit-[A-Za-z0-9]* is|\1FOLDER is|; s/pid [0-9]*/pid PID/'
kill $!
wait $!
echo $?
perfkit report live.sqlite | sed -n 's/^Command *//p'
perfkit run -q -f -o live.sqlite -- true && perfkit report live.sqlite | sed -n 's/^Command *//p'
ls
echo --- nothing is there
try perfkit report a.sqlite --from 1h 2>&1 | sed 's/after .*/after LENGTH/'
perfkit report a.sqlite --from 0 --to 1h >/dev/null && echo to
for command in device doctor version 'explain' 'explain small-grid'; do
  perfkit $command --json >/dev/full
  echo $?
done
perfkit baseline save -q main a.sqlite
for command in 'list' 'list --json' 'show main' 'show main --json'; do
  perfkit baseline $command >/dev/full
  echo $?
done
for command in 'verify a.sqlite' 'what-if' 'top --once'; do # 1 is a verdict, or no status of theirs
  perfkit $command a.sqlite >/dev/full
  echo $?
done
perfkit report a.sqlite --html /dev/full
echo $?
echo --- a limit on files
(ulimit -f 8; perfkit report a.sqlite --html page.html; echo $?; perfkit report a.sqlite --html old; echo $?)
cat old
ls | grep 'page\|old'
# --force replaces captures and empty files, nothing else.
echo thesis >thesis.txt
perfkit run -q -f -o thesis.txt -- true
cat thesis.txt
: >empty.txt
perfkit run -q -f -o empty.txt -- true && perfkit report empty.txt >/dev/null && echo replaced
