# From its first operand on, `perfkit run`'s line is the program's.
. "${0%/tests/*}/packaging/completion/perfkit.bash"
unset -f _command_offset
_command_offset() { COMPREPLY=("the command's from word $1"); }
try() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _perfkit
  echo "$* -> ${COMPREPLY[*]}"
}
try perfkit re
try perfkit run --wa
try perfkit run --wait = pri
try perfkit run --wait ''
try perfkit run --wait = primary --qui
try perfkit run -q --
try perfkit run -q -- ''
try perfkit run -q -- ls -
try perfkit run python3 --he
try perfkit run -o a.sqlite python3 --he
try perfkit run --wait = all -t nvtx python3 ''
try perfkit report --format j
try perfkit help d
try perfkit explain memory-
try perfkit ctl sta
try perfkit ctl --j
try perfkit report --stats cuda_gpu_k
try perfkit gate --baseline ''
perfkit run -q -o a.sqlite -- true
perfkit baseline save -q nightly a.sqlite
perfkit baseline save -q main a.sqlite
try perfkit gate --baseline ''
try perfkit gate -b n
