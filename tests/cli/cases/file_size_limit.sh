# The limit of file sizes is called by its name, not "disk I/O error", wherever a file meets it.
# Behind a pipe, so that our own words do not meet it too.
limited() {
  blocks=$1
  shift
  (ulimit -f "$blocks" && exec "$@") 2>&1 | grep -o 'cannot [a-z]* \(page\.html\)\?\|File too large[^(]*(ulimit -f)'
  echo "${PIPESTATUS[0]}"
}
perfkit run -q -o whole.sqlite -- true
limited 100 perfkit run -o small.sqlite -- echo ran
limited 100 perfkit export --format nsys whole.sqlite export.sqlite
limited 100 perfkit merge whole.sqlite -o merged.sqlite
limited 100 perfkit report --html page.html whole.sqlite
ls
