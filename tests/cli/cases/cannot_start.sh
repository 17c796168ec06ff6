# 126 and 127, and nothing is left behind or replaced.
try() { perfkit run "$@"; echo "$?"; }
mkdir folder
echo text >file
printf '#!/no/such/interpreter\n' >script
printf '\177ELFjunk' >broken
chmod +x script broken
perfkit run -q -o old.sqlite -- true
sum=$(cksum <old.sqlite)
try -- no-such-command
try -- ./no-such-command
try -- ./folder
try -- ./file
try -- ./script
try -- ./broken
try -- ''
try -f -o old.sqlite -- no-such-command
[ "$sum" = "$(cksum <old.sqlite)" ] && echo kept
ls
ls /dev/shm | grep perfkit- | wc -l >/dev/null
ls "$TMPDIR"
