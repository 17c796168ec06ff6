# Patterns in the name of a capture: one command line for every rank of a run.
unset RANK OMPI_COMM_WORLD_RANK MV2_COMM_WORLD_RANK PMI_RANK SLURM_PROCID PMIX_RANK
try() { perfkit run -q -o "$1" -- true; echo "$? <- $1"; }
host=$(uname -n)
try %h.sqlite
[ -e "$host.sqlite" ] && echo 'named after the host'
rm -f "$host.sqlite"
RANK=3 WORLD_SIZE=8 perfkit run -q -o 'a-%r.sqlite' -- true
OMPI_COMM_WORLD_RANK=4 perfkit run -q -o 'a-%r.sqlite' -- true
PART=one/half perfkit run -q -o '%q{PART}.sqlite' -- true
echo $?
mkdir one
PART=one/half perfkit run -q -o '%q{PART}.sqlite' -- true
CONTROL=$'tab\there' perfkit run -q -o '%q{CONTROL}.sqlite' -- true
try 50%%.sqlite
perfkit run -q -o 'p-%p.sqlite' -- true &
wait $!
[ -e "p-$!.sqlite" ] && echo 'named after the process'
rm -f p-*.sqlite
ls -R
try %r.sqlite
RANK=abc try %r.sqlite
RANK=8 WORLD_SIZE=8 try %r.sqlite
try %q{PERFKIT_NOT_SET}.sqlite
PERFKIT_NOT_SET= perfkit run -o '%q{PERFKIT_NOT_SET}' -- true
try %qNAME.sqlite
try %q{}.sqlite
try '%q{OPEN.sqlite'
try %d.sqlite
try 50%
try "$(printf 'x%.0s' {1..300})"
ls -R
# what stands in the name itself is the user's; a variable's control bytes are not
folder=$(printf 'new\nline\001')
mkdir "$folder"
ODD=$(printf 'a\tb') perfkit run -q -o "$folder/%q{ODD}.sqlite" -- true
ls "$folder"
