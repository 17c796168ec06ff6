# A signal in the middle of a report leaves the file that was there, no half one and no temporary one,
# and ends perfkit as it would have. What sends the signal stands in gnuplot's place.
if ! command -v sqlite3 >/dev/null; then
  echo 'sqlite3 is not installed'
  exit 77
fi
perfkit run -q -o run.sqlite -- true
sqlite3 run.sqlite 'DELETE FROM capture; DELETE FROM process; DELETE FROM string; DELETE FROM clock_sync;
  DELETE FROM capture_health' && sqlite3 run.sqlite <"$(dirname "$0")/../../report/roofline.sql" || exit 1
mkdir fake
cat >fake/gnuplot <<'end'
#!/bin/sh
kill -$SIGNAL $PPID
end
chmod +x fake/gnuplot
exec 2>/dev/null # bash tells who ended how
interrupted() { # SIGNAL HOW
  SIGNAL=$1 PATH="$PWD/fake:$PATH" env "--$2-signal=$1" perfkit report run.sqlite --roofline figure.svg
  echo "$? $(cat figure.svg) $1 $2"
}
echo old >figure.svg
for signal in INT TERM HUP PIPE; do
  interrupted $signal default
  ls
done
interrupted HUP ignore
