# The processor as a device: listed, measured, kept, measured again in part; what is refused. Figures
# differ from run to run and are not looked at.
export XDG_DATA_HOME="$SCRATCH/data"
shape() { sed -E 's/^(cpu:0) .*/\1 NAME/; s/^  [0-9]+ units.*/  ATTRIBUTES/; s/ +[0-9.,]+ [a-zA-Z/]+ +n\/a +n\/a$/: FIGURE/; s/(measured) 2.*/\1 DATE/'; }
names() { python3 -c 'import json, sys; [print(row["name"]) for row in json.load(sys.stdin)["ceilings"]]' <"$(echo "$SCRATCH"/data/perfkit/ceilings/*)"; }
perfkit device cpu | shape
echo --- quick
perfkit device cpu --measure --quick --only fp32,htod_pinned >quick.txt && grep -c 'multiply-add' quick.txt
ls "$SCRATCH/data" 2>/dev/null
echo --- kept
perfkit device cpu:0 --measure --only launch >/dev/null && names
perfkit device cpu --measure --only launch_latency | shape
names
perfkit device cpu --json | grep -c '"measured": [0-9]'
echo --- by the variable, or the option
PERFKIT_CEILINGS="$SCRATCH/elsewhere/deep" perfkit device cpu --measure --only launch >/dev/null; ls "$SCRATCH/elsewhere/deep" | wc -l
perfkit device cpu --ceilings "$SCRATCH/empty" | tail -n 1
echo --- a file of an earlier perfkit
file=$(echo "$SCRATCH"/data/perfkit/ceilings/*); printf 'perfkit-ceilings\t1\napi\tcpu\n' >"$file"
perfkit device cpu 2>&1 | sed "s/note: .*is not/note: FILE is not/" | shape; rm "$file"
echo --- refused
perfkit device gpu:0; echo $?
perfkit device cpu:1; echo $?
perfkit device cpu:0x; echo $?
perfkit device --only fp32; echo $?
perfkit device cpu --measure --only fp32,none; echo $?
perfkit device cpu --measure --only tensor_fp16 >/dev/null; echo $?
chmod a-w "$SCRATCH/data/perfkit/ceilings"
[ "$(id -u)" = 0 ] || { perfkit device cpu --measure --only launch >/dev/null 2>&1; echo $?; }
