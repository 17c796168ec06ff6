# Every command has help, generated pages and completion, and they agree.
perfkit help >overview
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z-]\{1,\}\) .*/\1/p' overview)
for command in run top ctl report explain sql mcp baseline gate ab diff verify what-if recover export import device doctor \
  version help; do
  echo "$commands" | grep -qx $command || echo "$command is not in the overview"
done
for command in $commands; do
  perfkit help $command >a
  awk -v command=$command 'length > 80 || / $/ {print command ": " $0}' a
  perfkit $command --help >b
  cmp a b
  perfkit $command -h | cmp - a
done
perfkit --help | cmp - overview
perfkit --generate made
ls made
for page in made/*; do
  command -v man >/dev/null && man --warnings -l "$page" 2>&1 >/dev/null
done
scripts=${0%/tests/*}/packaging/completion
. "$scripts/perfkit.bash"
complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _perfkit; printf '%s\n' "${COMPREPLY[@]}" | sort; }
complete_words perfkit re
complete_words perfkit run --w
complete_words perfkit run --wait ''
complete_words perfkit report --format m
command -v zsh >/dev/null && zsh -n "$scripts/_perfkit"
command -v fish >/dev/null && fish -n "$scripts/perfkit.fish"
awk 'length > 80' overview
