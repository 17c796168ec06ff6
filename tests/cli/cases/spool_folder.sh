# Private, where asked, and gone at the end, also when the program was killed.
mkdir spools
perfkit run -q --spool-dir=spools -- sh -c 'stat -c %a "$PERFKIT_DIR"; ls -d ../folder/spools/*; ls $PERFKIT_DIR'
ls -A spools
exec 2>/dev/null # the shell's word about the signal
perfkit run -q --spool-dir=spools -- sh -c 'kill -9 $$'
echo $?
ls -A spools
