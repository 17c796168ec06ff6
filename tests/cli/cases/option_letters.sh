# The same option has the same letter in every command. Told here: those that differ, and why they may.
for command in $(perfkit help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p'); do
  perfkit help $command | sed -n -e "s/^  -\(.\), --\([a-z-]*\).*/\2 -\1 $command/p" \
    -e "s/^      --\([a-z-]*\).*/\1 none $command/p"
done | sort >all
cut -d ' ' -f 1,2 all | sort -u | cut -d ' ' -f 1 | uniq -d | while read -r name; do
  grep "^$name " all
done
