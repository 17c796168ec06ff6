# perfkit is killed: the program goes on, and recover finishes the capture, once.
. "$(dirname "$0")/../recording.sh"
mkdir spools
mkfifo pipe
perfkit run -q --spool-dir=spools -- sh -c 'echo ready; read line; exit 4' >pipe 2>/dev/null <<<'' &
exec 5<pipe
read -r line <&5
wait
record --spool-dir=spools -o b.sqlite
until [ -e b.sqlite ]; do sleep 0.05; done
perfkit recover spools/*
echo "while it records: $?"
perfkit report b.sqlite | sed -n 's/^Ended *\(still running\).*/\1/p'
kill_perfkit
perfkit report b.sqlite 2>&1 | sed -n 's/; [0-9] process.*//; /^Ended/p; s/spools[^`]*/FOLDER/; /^Trust  /p; /interrupted/s/`.*FOLDER/`perfkit recover FOLDER/p'
perfkit verify b.sqlite b.sqlite | head -1
ls spools | wc -l
end_program
folder=$(echo spools/*)
perfkit recover -q --keep-spool $folder
echo "recovered: $?"
perfkit recover --keep-spool $folder
echo "again: $?"
perfkit recover -q $folder
echo "and removed: $?"
perfkit recover $folder
echo "nothing left: $?"
ls spools b.sqlite*
mkdir other
perfkit recover other
echo "not a spool: $?"
perfkit recover b.sqlite
echo "not a folder: $?"
