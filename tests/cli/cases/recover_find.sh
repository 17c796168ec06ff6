# After a SIGKILL nobody names the spool folder: it is found by its capture.
perfkit run -q -o a.sqlite -- sleep 1 &
job=$!
sleep 0.5
perfkit recover 2>&1 | grep -c "$PWD/a.sqlite"
{ kill -9 $job; wait $job; } 2>/dev/null
sleep 0.8
perfkit recover 2>/dev/null | grep "$PWD/a.sqlite" | sed 's|^.*\t|FOLDER |'
perfkit report a.sqlite 2>&1 >/dev/null | sed 's|recover /.*perfkit-|recover .../perfkit-|; s/perfkit-[A-Za-z0-9]*`/FOLDER`/'
perfkit recover -q a.sqlite
echo $?
perfkit recover a.sqlite
echo $?
perfkit recover 2>&1 | grep -c "$PWD/a.sqlite"
true
