# `-` is standard output, for one report; what cannot be written there is told; COLUMNS is obeyed.
perfkit run -q -o -a.sqlite -- true
perfkit run -o -b.sqlite -- true
perfkit report ./-a.sqlite --html - | head -n 1
perfkit report ./-a.sqlite --chrome-trace - | head -c 1
echo
try() { "$@"; echo "$? <- $*"; }
try perfkit report ./-a.sqlite --html - --flamegraph -
try perfkit report ./-a.sqlite --html - --format text
try perfkit report ./-a.sqlite --html page.html --flamegraph - --json
ls
for command in 'report ./-a.sqlite' 'report --json ./-a.sqlite' 'report --html - ./-a.sqlite' version help doctor
do
  perfkit $command >&-
  echo "$? <- $command"
done 2>&1
perfkit report ./-a.sqlite --html page.html >&- && ls page.html
COLUMNS=60 perfkit report ./-a.sqlite | awk 'length > 70' | wc -l
for width in x 20 -1 999999 '80 '; do
  COLUMNS=$width perfkit report ./-a.sqlite | cmp - <(env -u COLUMNS perfkit report ./-a.sqlite) && echo "as without: '$width'"
done
