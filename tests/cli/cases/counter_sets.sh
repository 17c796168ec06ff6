# The help of `perfkit run` names every set of counters that there is.
perfkit run --counters=nothing-like-it -- true 2>&1 | tee refused
sed -n 's/.*give one of \(.*\), or exact.*/\1/p' refused | tr -d ',' | tr ' ' '\n' | grep -v '^and$' >sets
perfkit run --help | tr -s '\n ' ' ' >help
while read -r set; do
  grep -q "[( ]$set (" help && echo "$set is there" || echo "$set is not in the help"
done <sets
