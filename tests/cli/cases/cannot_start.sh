# 126 and 127, and nothing is left behind or replaced.
try() { perfkit run "$@"; echo "$?"; }
mkdir folder
echo text >file
printf '#!/no/such/interpreter\n' >script
printf '\177ELFjunk' >broken
chmod +x script broken
echo kept >old.sqlite
try -- no-such-command
try -- ./no-such-command
try -- ./folder
try -- ./file
try -- ./script
try -- ./broken
try -- ''
try -f -o old.sqlite -- no-such-command
cat old.sqlite
ls
ls /dev/shm | grep perfkit- | wc -l >/dev/null
ls "$TMPDIR"
