set encoding utf8
set logscale xy
set xrange [0.041666666666666664:2400]
set yrange [137499999999.99997:1.2e+15]
set lmargin at screen 0.085
set rmargin at screen 0.615
set bmargin at screen 0.11
set tmargin at screen 0.89
set xlabel 'FLOP per byte of device memory'
set ylabel 'FLOP/s' offset 0,0
set format x '%g'
set format y '%.0s %c'
set grid back lt 1 lw 0.7 lc rgb '#d8d8d8'
set border 3
set tics nomirror
unset key
set label 'NVIDIA H200' at screen 0.085, screen 0.96 noenhanced font ',15'
set label 'roofs measured 2026-07-31, some theoretical; area: share of the t...rings: at L2; dashed: the library’s matmul' at screen 0.085, screen 0.92 noenhanced font ',10' tc rgb '#606060'
set arrow from 0.041666666666666664,175000000000 to 95.23809523809524,400000000000000 nohead back lw 2.5 lc rgb '#0072b2'
set label 'DRAM 4.20 TB/s' at 1.3531583832481329,5683265209642.158 noenhanced rotate by 45 offset character -0.4,0.7 font ',11'
set arrow from 0.041666666666666664,291666666666.6666 to 57.142857142857146,400000000000000 nohead back lw 2.5 lc rgb '#56b4e9'
set label 'L2 7.00 TB/s' at 0.3638653629304791,2547057540513.3535 noenhanced rotate by 45 offset character -0.4,0.7 font ',11'
set arrow from 8.571428571428571,60000000000000 to 2400,60000000000000 nohead back lw 2 lc rgb '#404040'
set label 'FP32 60.0 TFLOP/s, matmul 52.0' at 2400,60000000000000 noenhanced right offset character -0.5,0.6 font ',11'
set arrow from 8.571428571428571,52000000000000 to 2400,52000000000000 nohead back lw 1.5 dt 2 lc rgb '#404040'
set arrow from 19.116617142857145,133816320000000 to 2400,133816320000000 nohead back lw 2 lc rgb '#404040'
set label 'FP16 134 TFLOP/s' at 2400,133816320000000 noenhanced right offset character -0.5,0.6 font ',11'
set arrow from 57.142857142857146,400000000000000 to 2400,400000000000000 nohead back lw 2 lc rgb '#404040'
set label 'tensor TF32 400 TFLOP/s, matmul 340' at 2400,400000000000000 noenhanced right offset character -0.5,0.6 font ',11'
set arrow from 57.142857142857146,340000000000000 to 2400,340000000000000 nohead back lw 1.5 dt 2 lc rgb '#404040'
set label '1' at screen 0.655, screen 0.88 noenhanced right font ',12' tc rgb '#0072b2'
set label 'axpy' at screen 0.665, screen 0.88 noenhanced font ',11'
set label '27.0 % of the time, DRAM, at 89.3 %' at screen 0.665, screen 0.856 noenhanced font ',9' tc rgb '#606060'
set label '2' at screen 0.655, screen 0.827 noenhanced right font ',12' tc rgb '#d55e00'
set label 'gemm' at screen 0.665, screen 0.827 noenhanced font ',11'
set label '20.3 % of the time, compute, at 83.3 %' at screen 0.665, screen 0.8029999999999999 noenhanced font ',9' tc rgb '#606060'
set label '3' at screen 0.655, screen 0.7739999999999999 noenhanced right font ',12' tc rgb '#e69f00'
set label 'walk' at screen 0.665, screen 0.7739999999999999 noenhanced font ',11'
set label '16.9 % of the time, latency, at 9.5 %' at screen 0.665, screen 0.7499999999999999 noenhanced font ',9' tc rgb '#606060'
set label '4' at screen 0.655, screen 0.7209999999999999 noenhanced right font ',12' tc rgb '#d55e00'
set label 'tf32_gemm' at screen 0.665, screen 0.7209999999999999 noenhanced font ',11'
set label '13.5 % of the time, compute, at 75.0 %' at screen 0.665, screen 0.6969999999999998 noenhanced font ',9' tc rgb '#606060'
set label '5' at screen 0.655, screen 0.6679999999999998 noenhanced right font ',12' tc rgb '#56b4e9'
set label 'lookup' at screen 0.665, screen 0.6679999999999998 noenhanced font ',11'
set label '6.8 % of the time, L2, at 85.7 %' at screen 0.665, screen 0.6439999999999998 noenhanced font ',9' tc rgb '#606060'
set label '6' at screen 0.655, screen 0.6149999999999998 noenhanced right font ',12' tc rgb '#e69f00'
set label '’; system' at screen 0.665, screen 0.6149999999999998 noenhanced font ',11'
set label '3.4 % of the time, latency, at 33.3 %' at screen 0.665, screen 0.5909999999999997 noenhanced font ',9' tc rgb '#606060'
set label '7' at screen 0.655, screen 0.5619999999999997 noenhanced right font ',12' tc rgb '#d55e00'
set label '`touch HACKED`' at screen 0.665, screen 0.5619999999999997 noenhanced font ',11'
set label '3.0 % of the time, compute, at 74.1 %' at screen 0.665, screen 0.5379999999999997 noenhanced font ',9' tc rgb '#606060'
set label '8' at screen 0.655, screen 0.5089999999999997 noenhanced right font ',12' tc rgb '#b0b0b0'
set label 'a\nsystem "touch HA...nEND\nplot x' at screen 0.665, screen 0.5089999999999997 noenhanced font ',11'
set label '2.7 % of the time, not placed' at screen 0.665, screen 0.48499999999999965 noenhanced font ',9' tc rgb '#606060'
set label '9' at screen 0.655, screen 0.4559999999999997 noenhanced right font ',12' tc rgb '#d55e00'
set label '@HACKED {/Symbol a}... \n " # ; %s' at screen 0.665, screen 0.4559999999999997 noenhanced font ',11'
set label '2.4 % of the time, compute, at 85.4 %' at screen 0.665, screen 0.43199999999999966 noenhanced font ',9' tc rgb '#606060'
set label '10' at screen 0.655, screen 0.4029999999999997 noenhanced right font ',12' tc rgb '#b0b0b0'
set label 'void f<int, 2>(float const *) é核' at screen 0.665, screen 0.4029999999999997 noenhanced font ',11'
set label '2.0 % of the time, not placed' at screen 0.665, screen 0.37899999999999967 noenhanced font ',9' tc rgb '#606060'
set label '... and 1 more' at screen 0.665, screen 0.3499999999999997 noenhanced font ',10' tc rgb '#606060'
$discs << END
0.22 824999999999.9999 3.6984985016737153 0x0072b2
150 49999999999999.99 3.3503657141452377 0xd55e00
10 4000000000000 3.1542934404559486 0xe69f00
300 300000000000000 2.937415911436567 0xd55e00
16.666666666666668 20000000000000 2.0187079557182837 0xe69f00
33.333333333333336 44444444444444.445 1.9715628933760667 0xd55e00
50 75000000000000 1.9217173761823796 0xb0b0b0
66.66666666666667 114285714285714.28 1.8686462226083256 0xd55e00
83.33333333333333 166666666666666.66 1.8116281225050348 0xb0b0b0
END
$rings << END
0.16666666666666666 999999999999.9999 2.3992492508368577 0x56b4e9
END
set label '1, 5' at 0.22,824999999999.9999 left offset character 0.9,0.55 front font ',10'
set label '2' at 150,49999999999999.99 left offset character 0.9,0.55 front font ',10'
set label '3' at 10,4000000000000 left offset character 0.9,0.55 front font ',10'
set label '4' at 300,300000000000000 left offset character 0.9,0.55 front font ',10'
set label '6' at 16.666666666666668,20000000000000 left offset character 0.9,0.55 front font ',10'
set label '7' at 33.333333333333336,44444444444444.445 left offset character 0.9,0.55 front font ',10'
set label '8' at 50,75000000000000 left offset character 0.9,0.55 front font ',10'
set label '9' at 66.66666666666667,114285714285714.28 left offset character 0.9,0.55 front font ',10'
set label '10' at 83.33333333333333,166666666666666.66 left offset character 0.9,0.55 front font ',10'
plot $discs using 1:2:3:4 with points pt 7 ps variable lc rgb variable notitle, \
     $rings using 1:2:3:4 with points pt 6 lw 2 ps variable lc rgb variable notitle
