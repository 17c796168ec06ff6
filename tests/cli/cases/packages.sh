# The packages: what cpack makes passes lintian (but for the licence, which they do not name), runs from where it is unpacked, and is found by
# find_package; a project can also have perfkit in its own build.
[ -n "${PERFKIT_BUILD-}" ] || { echo 'run by ctest only: it packs the build folder'; exit 77; }
grep -q 'PERFKIT_SANITIZE:STRING=.' "$PERFKIT_BUILD/CMakeCache.txt" && { echo 'not of a build with sanitizers'; exit 77; }
for tool in cpack dpkg dpkg-shlibdeps file cmake ninja; do command -v "$tool" >/dev/null || { echo "no $tool"; exit 77; }; done
source=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$PERFKIT_BUILD/CMakeCache.txt")
unset PERFKIT_COLLECTOR
(cd "$PERFKIT_BUILD" && cpack -G DEB -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$SCRATCH/made") >log 2>&1 || tail -n 5 log
(cd "$SCRATCH/made" && ls *.deb)
if command -v lintian >/dev/null; then # in a build for another prefix than /usr libraries may be in /usr/lib
  (cd "$SCRATCH/made" && lintian --tag-display-limit 0 *.deb 2>&1) |
    grep -v -e 'no-copyright-file' -e 'running with root' -e 'pkg-config-unavailable-for-cross-compilation'
fi
for deb in "$SCRATCH"/made/*.deb; do dpkg -x "$deb" "$SCRATCH/root"; done
perfkit="$SCRATCH/root/usr/bin/perfkit"
"$perfkit" doctor | sed -n 's|/lib/x86_64-linux-gnu/|/lib/|; /^  ok    library/p'
"$perfkit" run -q -o one.sqlite -- "$HELPERS/target-static" exit 0
readelf -d "$SCRATCH"/root/usr/bin/perfkit "$SCRATCH"/root/usr/lib/*/perfkit/libperfkit_collector.so "$SCRATCH"/root/usr/lib/perfkit/*.so 2>/dev/null |
  grep -c 'NEEDED.*libOpenCL'
readelf -d "$(find "$SCRATCH/root" -name 'libprof.so.0')" | sed -n 's/.*SONAME.*\[/soname [/p'
PYTHONPATH="$SCRATCH/root/usr/lib/python3/dist-packages" python3 -c '
import importlib.metadata
import perfkit
print("plugin of pytest:", *[entry.value for entry in importlib.metadata.entry_points(group="pytest11") if "perfkit" in entry.name])
with perfkit.open("one.sqlite") as capture:
    print(len(list(capture.kernels())), "kernels by", perfkit.__file__)' | sed 's|/usr.*|/...|'

# What examples build with is what perfkit builds with.
. "$source/scripts/packages.sh"
for name in $BUILD_PACKAGES; do
  for example in containers/Dockerfile ci/github-actions.yml; do
    grep -qw -e "$name" "$source/examples/$example" || echo "examples/$example does not install $name"
  done
done

# What the examples install, by their own lines: the files are there, and nothing of perfkit's that they need is missing. Stand-ins say what
# apt-get was given and what of it needs which other package of perfkit, and take the place of downloads and removals.
mkdir stand-ins job
cat >stand-ins/apt-get <<'end'
[ "$1" != install ] || for word; do
  case $word in *.deb) dpkg-deb --field "$word" Package Depends || echo "no file $word" ;; lib*) echo "Package: $word" ;; esac
done | grep -oE '^Package: .*|(perfkit|libprof)[a-z0-9-]*|no file .*' | sort -u
end
cat >stand-ins/curl <<'end'
while [ $# -gt 0 ]; do case $1 in -o) out=$2; shift ;; http*) cp "$MADE/${1##*/}" "${out:-.}" ;; esac; shift; done
end
echo '"$@"' >stand-ins/sudo
for name in rm perfkit; do echo true >"stand-ins/$name"; done
sed -i '1i #!/bin/bash' stand-ins/*
chmod +x stand-ins/*
lines() { # FILE PATTERN [VARIABLE=...]: runs what is indented more than the line that matches
  awk -v pattern="$2" '{indent = match($0, /[^ ]/) - 1} on && indent <= at {exit} on; $0 ~ pattern {on = 1; at = indent}' "$source/examples/$1" |
    sed "s/^ *- //; s/^'\(.*\)'\$/\1/; s|/packages/|$MADE/|g" | (cd job && env PATH="$SCRATCH/folder/stand-ins:$PATH" "${@:3}" bash -eo pipefail 2>&1)
}
export MADE="$SCRATCH/made" RUNNER_TEMP="$SCRATCH/folder/job"
echo 'the action, from a folder and from an address:'
version=$(sed -n 's/^ *default: \([0-9.]*\)$/\1/p' "$source/examples/ci/perfkit-gate/action.yml")
for packages in "$MADE" http://localhost/x/; do
  lines ci/perfkit-gate/action.yml '^      run: ' PACKAGES="$packages" FILE="perfkit_${version}_amd64.deb"
  rm -f job/*
done
echo 'the template:'
version=$(sed -n 's/^ *PERFKIT_VERSION: //p' "$source/examples/ci/gitlab-template.yml")
lines ci/gitlab-template.yml 'before_script:' PERFKIT_VERSION="$version" PERFKIT_PACKAGES=http://localhost/x
echo 'the Dockerfile:'
lines containers/Dockerfile '^RUN --mount'
echo 'the recipe:'
lines containers/perfkit.def '^%post'

cmake -G Ninja -S "$source/tests/cli/consumer" -B found -DCMAKE_PREFIX_PATH="$SCRATCH/root/usr" >log 2>&1 || cat log
ninja -C found >log 2>&1 || cat log
found/everything one.sqlite
found/stable one.sqlite
found/annotated && echo annotated
cmake -G Ninja -S "$source/tests/cli/consumer" -B part -DPERFKIT_SOURCE="$source" -DPERFKIT_CUDA_KERNELS=OFF >log 2>&1 || cat log
ninja -C part annotated >log 2>&1 || cat log
[ "$(ninja -C part -t commands everything stable | wc -l)" -gt 100 ] && echo complete # building it takes minutes
part/annotated && echo annotated
