# Too few descriptors: told with the remedy, and nothing is left behind. How many are too few
# depends on what was inherited.
mkdir spools
for limit in 5 6 7 8 9 10 11; do
  (ulimit -n $limit; perfkit run -q -f --spool-dir spools -o a.sqlite -- true) 2>>messages
done
grep 'cannot start a process' messages | grep -v '(ulimit -n)$'
grep -o -m 1 'Too many open files: .*(ulimit -n)' messages | grep -o 'ulimit.*n'
ls spools
