# <program>.sqlite, -2, -3; nothing is overwritten without --force.
perfkit run -q -- true
perfkit run -q -- true
perfkit run -q -- /bin/true
ls
echo mine >other.sqlite
perfkit run -q -o other.sqlite -- true
echo $?
cat other.sqlite
perfkit run -q -f -o other.sqlite -- true # nor what is no capture, with it
echo $?
: >other.sqlite
perfkit run -q -f -o other.sqlite -- true
echo $?
head -c 15 other.sqlite
echo
mkdir folder
perfkit run -q -o folder -- true
echo $?
perfkit run -q -o folder/ -- true
echo $?
perfkit run -q -o folder/a.sqlite -- true
ls folder
# What an interpreter runs gives the name, not the interpreter.
mkdir scripts && cd scripts && echo 'import sys' >train.py && echo 'exit 0' >go.sh
perfkit run -q -- python3 -u ./train.py --data a.py
perfkit run -q -- sh go.sh
perfkit run -q -- sh -c 'true go.sh'
perfkit run -q -- python3 -m site >/dev/null
ls ./*.sqlite
# Another tool's file: report says what reads it, and import finds a name.
echo '{"traceEvents":[{"ph":"X","name":"k","cat":"kernel","pid":0,"tid":7,"ts":1,"dur":2}]}' >rank0.pt.trace.json
perfkit report rank0.pt.trace.json
perfkit import -q rank0.pt.trace.json && ls rank0*
cp rank0.sqlite other.nsys-rep && printf 'NV' | dd of=other.nsys-rep conv=notrunc status=none
perfkit report other.nsys-rep
cd ..
# A side file of a capture that is gone takes its name too.
touch true-4.sqlite-wal
perfkit run -q -- true
ls true-*
