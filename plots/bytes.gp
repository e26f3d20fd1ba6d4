# bytes.gp - bytes that a worker sends in a step, with the law, and the bytes
# that a server with its own link receives: reads table.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/table.csv"
load "cells.gp"
set title "Bytes of a step: sent by a worker, received by a server"
set xlabel "MiB, payload"
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set yrange [n - 0.5 : -0.5]
set xrange [0:*]
set ytics noenhanced
set key outside bottom left horizontal
set bmargin 6
MIB = 1048576.0
SERVER = ""
if (has_numbers(FILE, "bytes_rx_per_server_step")) { SERVER = ', keyentry with boxes lc rgb "#c9c9c9" title "received by a server", FILE using (column("bytes_rx_per_server_step") / MIB / 2):($0 + 0.17):(column("bytes_rx_per_server_step") / MIB / 2):(0.16) with boxxyerror lc rgb "#c9c9c9" notitle' }
plot keyentry with boxes lc rgb "#777777" title "sent by a worker (colour: backend)", \
     FILE using (column("bytes_tx_per_worker_step") / MIB / 2):($0 - 0.17):(column("bytes_tx_per_worker_step") / MIB / 2):(0.16): \
        (hex(backend_colour(stringcolumn("backend")))):ytic(shown(stringcolumn("cell"))) \
        with boxxyerror lc rgb variable notitle, \
     "" using (column("law_bytes_tx") / MIB):($0 + 0.03):(0):(-0.4) with vectors nohead lw 3 lc rgb "#000000" title "law for a worker" @SERVER
