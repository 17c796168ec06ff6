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
# A side file of a capture that is gone takes its name too.
touch true-4.sqlite-wal
perfkit run -q -- true
ls true-*
