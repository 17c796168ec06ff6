# Pages of the rules: every finding can be followed to its formula, in each format.
perfkit explain launch-bound | sed -n 1,3p
for rule in $(perfkit explain | cut -d' ' -f1); do
    perfkit explain "$rule" | grep -q '^Bound ' || echo "$rule has no bound"
    perfkit explain "$rule" --format markdown | grep -q "^## $rule\$" || echo "$rule: markdown"
done
[ "$(perfkit explain --json | grep -c '"rule":')" = "$(perfkit explain | wc -l)" ] && echo 'all in JSON'
perfkit explain tail-efect; echo "status $?"
perfkit explain leak; echo "status $?"
perfkit explain nothing-like-it; echo "status $?"
perfkit explain launch-bound tail-effect; echo "status $?"
