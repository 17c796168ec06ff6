# On a network file system the capture grows in the spool folder and arrives whole at the end.
mkdir spools there
export PERFKIT_TEST_NETWORK_FS=1
perfkit run -q --spool-dir=spools -o there/a.sqlite -- sh -c 'stat -c %s there/a.sqlite; ls "$PERFKIT_DIR" | grep sqlite$'
ls there spools
head -c 15 there/a.sqlite
echo
perfkit run -q -o there/a.sqlite -- true
echo $?
perfkit run -q -f -o there/a.sqlite -- true
echo $?
perfkit run -q -o there/b.sqlite -- no-such-command
echo $?
ls there spools
# Across file systems: copied.
perfkit run -q --spool-dir=/dev/shm -o there/c.sqlite -- true && head -c 15 there/c.sqlite
