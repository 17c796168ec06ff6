# perfkit is killed: the program goes on, and recover finishes the capture, once.
mkdir spools
mkfifo pipe
perfkit run -q --spool-dir=spools -- sh -c 'echo ready; read line; exit 4' >pipe 2>/dev/null <<<'' &
exec 5<pipe
read -r line <&5
wait
perfkit run -q --spool-dir=spools -o b.sqlite -- sleep 1 &
job=$!
while [ ! -e spools/*/capture ]; do sleep 0.05; done
sleep 0.3
perfkit recover spools/*
echo "while it records: $?"
{ kill -9 $job; wait $job; } 2>/dev/null
ls spools | wc -l
sleep 1
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
