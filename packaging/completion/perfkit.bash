# bash completion for perfkit, which itself says what may come next.
_perfkit() {
  local cur=${COMP_WORDS[COMP_CWORD]} value more
  if [ "$cur" = '=' ]; then cur=; fi
  COMPREPLY=()
  while IFS=$'\t' read -r value more; do
    case $value in
      :file) COMPREPLY=($(compgen -f -- "$cur")) ;;
      :folder) COMPREPLY=($(compgen -d -- "$cur")) ;;
      :command) # from word $more on
        if declare -F _command_offset >/dev/null; then _command_offset "$more"
        elif [ "$more" -lt "$COMP_CWORD" ]; then COMPREPLY=($(compgen -f -- "$cur"))
        else COMPREPLY=($(compgen -c -f -- "$cur")); fi
        ;;
      *) COMPREPLY+=("$value") ;;
    esac
  done < <(perfkit --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o filenames -o bashdefault -F _perfkit perfkit
