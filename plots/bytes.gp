# bytes.gp - bytes that a worker sends in a step, beside the law: reads
# table.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/table.csv"
load "style.gp"
cells = values_of(FILE, "cell")
n = words(cells)
set title "Traffic: gradients that a worker sends in a step"
set xlabel "MiB, payload"
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set yrange [n - 0.5 : -0.5]
set xrange [0:*]
set ytics noenhanced
set key outside bottom center horizontal
set bmargin 6
MIB = 1048576.0
plot FILE using (column("bytes_tx_per_worker_step") / MIB / 2):0:(column("bytes_tx_per_worker_step") / MIB / 2):(0.36): \
        (hex(backend_colour(stringcolumn("backend")))):ytic(stringcolumn("cell")) \
        with boxxyerror lc rgb variable title "measured (colour: backend)", \
     "" using (column("law_bytes_tx") / MIB):0:(0):(0.45) with vectors nohead lw 3 lc rgb "#000000" notitle, \
     "" using (column("law_bytes_tx") / MIB):0:(0):(-0.45) with vectors nohead lw 3 lc rgb "#000000" title "law"
