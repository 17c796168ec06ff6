# Options end at the command: what follows is the command's own.
perfkit run -q -oa.sqlite sh -c 'echo "$@"' name -o --help -q
perfkit run -qo b.sqlite -- echo -- --
perfkit run --quiet --output=c.sqlite echo -n
echo
printf '#!/bin/sh\necho odd name\n' >-odd
chmod +x -- -odd
PATH=.:$PATH perfkit run -q -- -odd
perfkit run -q --trace cuda,nvtx,opencl --wait=primary --spool-limit=64M --no-preload -- true
ls
