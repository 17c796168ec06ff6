# A capture is named after the program, or after the script that an interpreter runs, whatever stands before it.
printf 'exit 0\n' >train.sh
name() {
  perfkit run -q -- "$@" && echo "$(ls ./*.sqlite) <- $*"
  rm -f ./*.sqlite
}
name true
name sh ./train.sh --steps 3
name env A=1 B=2 sh train.sh
name nice -n 1 sh -e train.sh
name timeout 60 env A=1 true
name env -u A -C . timeout -s KILL -k 5 60 true
name sh -c 'exit 0'
perfkit run -q -- sh train.sh && perfkit run -q -- sh train.sh && ls ./*.sqlite
