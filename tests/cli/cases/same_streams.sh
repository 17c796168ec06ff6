# Standard input reaches the program untouched, its output is byte for byte its own, and its folder
# and environment are what they were but for the variables that perfkit sets.
head -c 1000000 /dev/urandom >bytes
perfkit run -q -- cat <bytes | cmp - bytes && echo stdin to stdout
perfkit run -q -- sh -c 'cat >&2' <bytes 2>&1 >/dev/null | cmp - bytes && echo stdin to stderr
(perfkit run -q -- sh -c 'read -r line; echo "$line"'; cat) <<END
first
the rest is for the next program
END
mkdir 'a folder'
cd 'a folder'
perfkit run -q -- pwd
cd ..
ODD=$(printf 'a\001b\nc') perfkit run -q -- env -0 | sort -z >under
ODD=$(printf 'a\001b\nc') env -0 | sort -z >bare
diff <(tr '\0\n' '\n ' <bare) <(tr '\0\n' '\n ' <under) | sed -n 's/^> \([A-Z0-9_]*\)=.*/\1/p' |
  grep -v -e '^_$' -e CUDA
diff <(tr '\0\n' '\n ' <bare) <(tr '\0\n' '\n ' <under) | grep -c '^< [^_]' || true
