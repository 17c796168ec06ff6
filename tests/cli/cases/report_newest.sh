# Without a file: the capture written last, by what is in the file.
perfkit report
echo $?
perfkit run -q -o first.sqlite -- true
touch -d '1 minute ago' first.sqlite
echo 'not a database' >later.sqlite
perfkit report --format json | grep -o first.sqlite | sort -u
perfkit report later.sqlite
echo $?
perfkit report none.sqlite
echo $?
head -c 5000 first.sqlite >cut.sqlite
perfkit report cut.sqlite >/dev/null
echo $?
perfkit report first.sqlite --html page.html --flamegraph stacks --chrome-trace trace.json
ls
perfkit report -q first.sqlite --html page.html --flamegraph stacks
perfkit report first.sqlite --html /no/such/page.html
echo $?
perfkit report first.sqlite >/dev/full
echo $?
