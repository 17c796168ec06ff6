# Something can be recorded here, and --json says the same.
perfkit doctor >text
echo $?
grep -c 'perfkit can record here:.*NVTX' text
perfkit doctor --json >json
echo $?
grep -o '"nvtx": true' json
# A crash or a hang of what is probed is an answer, not the end.
echo 'nonsense' >broken.so
PERFKIT_COLLECTOR=$PWD/broken.so perfkit doctor | grep -E 'collector|library|can record' | head -n 3 | sed 's/cannot be loaded.*/cannot be loaded/'
