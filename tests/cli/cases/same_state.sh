# What a program sees of how it was started: the same with and without perfkit.
compare() { # title, then a command line with FILE for where the state goes
  title=$1
  shift
  "${@//FILE/bare}" </dev/null
  WRAP='perfkit run -q -f -o a.sqlite --' "${@//FILE/under}" </dev/null
  if diff bare under; then echo "$title: same"; else echo "$title: differs"; fi
}
run() { $WRAP target state "$@"; }
export -f run
export WRAP=
odd=$(printf 'odd \001\377\n\t"quoted"')
compare arguments bash -c 'run FILE "$1" "" "--" "-o"' - "$odd"
compare "no stdin" bash -c 'run FILE <&-'
compare "no stdout" bash -c 'run FILE >&-'
compare "no stderr" bash -c 'run FILE 2>&-'
compare "nothing open" bash -c 'run FILE <&- >&- 2>&-'
compare "more descriptors" bash -c 'run FILE 3</etc/passwd 7>>more 9<>more'
compare umask bash -c 'umask 077; run FILE'
compare limits bash -c 'ulimit -c 0; ulimit -f 2048; ulimit -n 99; ulimit -s 4096; run FILE'
compare nice bash -c 'nice -n 7 $WRAP target state FILE'
compare nohup bash -c 'nohup $WRAP target state FILE 2>/dev/null'
compare "ignored signals" bash -c 'trap "" INT TERM USR1 PIPE CHLD TSTP; run FILE'
