# Every exit status and every signal that ends a process, as without perfkit.
for status in $(seq 0 255); do
  perfkit run -q -f -o a.sqlite -- target exit $status
  [ $? = $status ] || echo "exit $status became $?"
done
exec 2>/dev/null # the shell's words about signals
for signal in 1 2 3 4 6 7 8 9 10 11 12 13 14 15 16 24 25 26 27 29 30 31 34 64; do
  perfkit run -q -f -o a.sqlite -- target die $signal
  seen=$?
  [ $seen = $((128 + signal)) ] || echo "signal $signal became $seen"
done
ls
