# perfkit was killed and its program runs on: nothing is thrown away before the user has chosen.
mkdir spools
begin() {
  perfkit run -q --spool-dir=spools -o "$1" -- sh -c "sleep $2; :" &
  job=$!
  while [ -z "$(ls spools/*/capture 2>/dev/null)" ]; do sleep 0.05; done
  sleep 0.4
  { kill -9 $job; wait $job; } 2>/dev/null
}
begin a.sqlite 3
perfkit recover spools/* 2>&1 | sed 's/^\(perfkit recover: [0-9] process\(es\)\? of the program still runs\?\).*/\1/; s/: 2 processes/: N processes/'
ls a.sqlite spools | grep -c perfkit-
perfkit recover -q --follow spools/*
echo "waited: $?"
begin b.sqlite 5
perfkit recover -q --force spools/*
echo "forced: $?"
# Elsewhere, and never over another file.
begin c.sqlite 1
sleep 1
echo mine >d.sqlite
perfkit recover -q -o d.sqlite spools/*
echo "over another file: $?"
perfkit recover -q -o e.sqlite spools/*
echo "elsewhere: $?"
# The file it was writing is gone.
begin f.sqlite 1
sleep 1
rm f.sqlite*
perfkit recover -q spools/*
echo "live file gone: $?"
ls
ls spools
perfkit report f.sqlite >/dev/null
echo "readable: $?"
