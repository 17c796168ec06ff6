# What is wrong and how to mend it; 2, and 125 for run.
try() { "$@"; echo "$? <- $*"; }
try perfkit rnu
try perfkit something-else
try perfkit stats
try perfkit query
try perfkit --verbose
try perfkit report a b
try perfkit report --formta json
try perfkit report --format xml
try perfkit report --top 0
try perfkit report --json=yes
try perfkit report --json --format csv
try perfkit report --roofline-of ranges
try perfkit report other.sqlite a.sqlite
try perfkit report --stats list --html page.html
try perfkit recover a b
try perfkit report --html x.html 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17
try perfkit doctor now
try perfkit help nothing
try perfkit version --jsno
try perfkit run
try perfkit run --
try perfkit run -o
try perfkit run --outptu=a -- true
try perfkit run -x -- true
try perfkit run --wait=sometimes -- true
try perfkit run --trace=nvtx,cdua -- true
try perfkit run --trace= -- true
try perfkit run --spool-limit=5x -- true
try perfkit run --spool-limit=99999999999G -- true
try perfkit run --spool-limit=1k -- true
try perfkit run --output= -- true
try perfkit run --delay=soon -- true
try perfkit run --dormant --delay=1 -- true
try perfkit run --capture-range=nvtx: -- true
try perfkit run '--kernel=a(' -- true
try perfkit run --trace=nvtx --cuda-managed=faults -- true
try perfkit run --stacks=launch,free -- true
try perfkit run --stacks=launch:0 -- true
try perfkit run --stacks=sync,launch,launch:3 -- true
try perfkit run --stacks --stack-depth=300 -- true
try perfkit run --stack-depth=30 -- true
try perfkit run --stacks --trace=nvtx -- true
try perfkit run --stalls=33 -- true
try perfkit run --stalls --counters=roofline -- true
try perfkit run --stalls --trace=nvtx -- true
try perfkit ctl
try perfkit ctl begin
try perfkit ctl start --json
try perfkit ctl start absent.sqlite
try perfkit import absent.json -o -
try perfkit export absent.sqlite -
try perfkit merge absent.sqlite -o -
try perfkit merge absent.sqlite -o ''
try perfkit export absent.sqlite ''
try perfkit top --window 2m absent.sqlite
try perfkit top --window 500ms absent.sqlite
try perfkit top --window 1m absent.sqlite # as any time
try perfkit run --ring=0 -- true
# What is above a limit is told the limit.
for options in "run --stack-depth 99999999999" "run --cpu-sample=10001" "run --spool-limit 99999999999999999999" \
    "run --delay 99999999999999999999" "run --duration 1000000h" "run --counters-interval 3s" \
    "report --top 4294967296" "report --skip 4294967295" \
    "ab --runs 99999999999" "gate --sessions 99999999999" "top --refresh 9999999999"; do
    # shellcheck disable=SC2086
    try perfkit $options
done
ls
perfkit run -q -o a.sqlite -- true
try perfkit a.sqlite
try perfkit /bin/true
try perfkit compare a.sqlite b.sqlite
try perfkit top no.sqlite
try perfkit run --cpu-sample 99 -- true
try perfkit run --trace=nvtx -f -o a.sqlite -- true
