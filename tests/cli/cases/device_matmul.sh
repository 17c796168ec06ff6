# What perfkit makes of the lines of its measuring program, which stands beside it: products of
# matrices, what is sustained, what libraries reach, and that there is no library.
export XDG_DATA_HOME="$SCRATCH/data"
mkdir "$SCRATCH/bin" && cp "$BIN/perfkit" "$SCRATCH/bin/"
perfkit="$SCRATCH/bin/perfkit"
device=$(perfkit device cpu --json | sed -n 's/^ *"name": "\(.*\)",$/\1/p' | head -n 1)
measure() { # WHAT NAME VALUE HOW, a line each
  { echo '#!/bin/sh'; echo 'cat <<"EOF"'; printf '{"what":"device","name":"%s","how":"host"}\n' "$device"
    sed -E 's/^([^ ]*) ([^ ]*) ([^ ]*) ?(.*)/{"what":"\1","name":"\2","value":\3,"how":"\4"}/'; echo EOF; } >"$SCRATCH/bin/perfkit-measure"
  chmod +x "$SCRATCH/bin/perfkit-measure"
}
shape() { sed -E 's/^(cpu:0)  .*/\1 NAME/; s/^  [0-9]+ units.*/  ATTRIBUTES/; s/(measured) 2.*/\1 DATE/'; }
rows() { python3 -c 'import json, sys
for row in json.load(sys.stdin)["ceilings"]: print(row["name"], row["value"], row["how"])' <"$(echo "$SCRATCH"/data/perfkit/ceilings/*)"; }
measure <<'END'
ceiling dram_copy 4e12 copy
ceiling dram_triad 4.4e12 triad
ceiling fp32 66e12 chains
sustained fp32 64e12
ceiling matmul_fp32 51e12 cuBLAS 1, 8 x 8 x 8
sustained matmul_fp32 48e12
sustained not_known 1
library fp32 51e12 cuBLAS 1, 8 x 8 x 8
library dram_copy 4.2e12 the copy of the driver
not_json
END
"$perfkit" device cpu --measure --against-libraries | shape
rows
"$perfkit" device cpu --json | sed -n '/"name": "matmul_fp32"/,/formula/p' | sed 's/\("measured_at_s": \)[0-9]*/\1TIME/'
echo --- a later measurement of one of them, and no library
measure <<'END'
ceiling fp32 65e12 chains
none libraries null matrix products: no libcublas.so on this machine
END
"$perfkit" device cpu --measure --only fp32,matmul_fp32 | shape
echo --- never measured: no row, null
"$perfkit" device cpu --ceilings "$SCRATCH/none" | shape
"$perfkit" device cpu --ceilings "$SCRATCH/none" --json | grep -A 3 '"name": "matmul_bf16"'
