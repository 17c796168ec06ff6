# A disk with no room: known before the start, or said at the end with how to go on.
mkdir small
if ! mount -t tmpfs -o size=300k none small 2>/dev/null; then
  echo 'mount is not permitted here'
  exit 77
fi
trap 'umount -l "$SCRATCH/folder/small"' EXIT
dd if=/dev/zero of=small/filler bs=1k count=290 2>/dev/null
perfkit run -q -o small/a.sqlite -- echo ran
echo $?
ls small
rm small/filler
