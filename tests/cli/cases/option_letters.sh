# The same option has the same letter in every command. Told here: those that differ, and why they may. It also takes the
# same kind of value, whatever file that is: those that differ, of which there are none.
for command in $(perfkit help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p'); do
  perfkit help $command | sed -n -e "s/^  -\(.\), --\([a-z-]*\)\([^ ]*\( [A-Z][^ ]*\)\{0,1\}\).*/\2 -\1 $command \3/p" \
    -e "s/^      --\([a-z-]*\)\([^ ]*\( [A-Z][^ ]*\)\{0,1\}\).*/\1 none $command \2/p"
done | sort >all
cut -d ' ' -f 1,2 all | sort -u | cut -d ' ' -f 1 | uniq -d | while read -r name; do
  grep "^$name " all | cut -d ' ' -f 1-3
done
echo values:
sed -e 's/ [^ ]* [^ ]* / /' -e 's/OUT$/FILE/' all | sort -u >values
cut -d ' ' -f 1 values | uniq -d | while read -r name; do grep "^$name " all; done
