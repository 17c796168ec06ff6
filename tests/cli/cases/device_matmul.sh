# What perfkit makes of the lines of its measuring program, which stands beside it: products of
# matrices, what is sustained, what libraries reach, and that there is no library.
export XDG_DATA_HOME="$SCRATCH/data"
mkdir "$SCRATCH/bin" && cp "$BIN/perfkit" "$SCRATCH/bin/"
perfkit="$SCRATCH/bin/perfkit"
device=$(perfkit device cpu --json | sed -n 's/^ *"name": "\(.*\)",$/\1/p' | head -n 1)
measure() { { echo '#!/bin/sh'; echo "printf 'device\\t%s\\t\\thost\\n' '$device'"; echo "printf '$1'"; } >"$SCRATCH/bin/perfkit-measure"; chmod +x "$SCRATCH/bin/perfkit-measure"; }
shape() { sed -E 's/^(cpu:0)  .*/\1 NAME/; s/^  [0-9]+ units.*/  ATTRIBUTES/; s/(measured) 2.*/\1 DATE/'; }
rows() { python3 -c 'import json, sys
for row in json.load(sys.stdin)["ceilings"]: print(row["name"], row["value"], row["how"])' <"$(echo "$SCRATCH"/data/perfkit/ceilings/*)"; }
measure 'ceiling\tdram_copy\t4e12\tcopy\nceiling\tdram_triad\t4.4e12\ttriad\nceiling\tfp32\t66e12\tchains\nsustained\tfp32\t64e12\t\nceiling\tmatmul_fp32\t51e12\tcuBLAS 1, 8 x 8 x 8\nsustained\tmatmul_fp32\t48e12\t\nsustained\tnot_known\t1\t\nlibrary\tfp32\t51e12\tcuBLAS 1, 8 x 8 x 8\nlibrary\tdram_copy\t4.2e12\tthe copy of the driver\n'
"$perfkit" device cpu --measure --against-libraries | shape
rows
"$perfkit" device cpu --json | sed -n '/"name": "matmul_fp32"/,/formula/p' | sed 's/\("measured_at_s": \)[0-9]*/\1TIME/'
echo --- a later measurement of one of them, and no library
measure 'ceiling\tfp32\t65e12\tchains\nnone\tlibraries\t\tmatrix products: no libcublas.so on this machine\n'
"$perfkit" device cpu --measure --only fp32,matmul_fp32 | shape
echo --- never measured: no row, null
"$perfkit" device cpu --ceilings "$SCRATCH/none" | shape
"$perfkit" device cpu --ceilings "$SCRATCH/none" --json | grep -A 3 '"name": "matmul_bf16"'
