# Several captures in one page: the last is the candidate, the first the baseline, those between are named by their files.
perfkit run -q -o step-old.sqlite -- true
cp step-old.sqlite step-pool.sqlite
cp step-old.sqlite step-new.sqlite
labels() { grep -o '"label":"[^"]*","capture"' "$1" | cut -d '"' -f 4; }
perfkit report -q step-old.sqlite step-pool.sqlite step-new.sqlite --html page.html
labels page.html
mkdir 1 2 3
for i in 1 2 3; do cp step-old.sqlite $i/step.sqlite; done
perfkit report -q 1/step.sqlite 2/step.sqlite 2/step.sqlite 3/step.sqlite --html folders.html
labels folders.html
perfkit report -q step-new.sqlite --html alone.html
labels alone.html
perfkit report step-old.sqlite step-pool.sqlite step-new.sqlite
echo $?
