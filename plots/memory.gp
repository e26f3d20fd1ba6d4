# memory.gp - peak memory of a worker and of a server: reads table.csv.

DIR = ARG1; OUT = ARG2
FILE = DIR . "/table.csv"
load "cells.gp"
MIB = 1048576.0
set title "Peak memory of the worker, and of the server, that has most"
set xlabel "MiB"
set grid noytics xtics lc rgb "#e2e2e2" lt 1
set yrange [n - 0.5 : -0.5]
set xrange [0:*]
set ytics noenhanced
set key outside bottom left horizontal
set bmargin 6
SERVER = ""
if (has_numbers(FILE, "server_peak_memory_bytes")) { SERVER = ', keyentry with boxes lc rgb "#c9c9c9" title "server", FILE using (column("server_peak_memory_bytes") / MIB / 2):($0 + 0.17):(column("server_peak_memory_bytes") / MIB / 2):(0.16) with boxxyerror lc rgb "#c9c9c9" notitle' }
RANGES = ""
if (repeated(FILE)) { RANGES = ', "" using (end_of("peak_memory_bytes") / MIB):($0 - 0.17):(end_of("peak_memory_bytes_least") / MIB):(end_of("peak_memory_bytes_most") / MIB) with xerrorbars pt -1 lw 1.5 lc rgb "#000000" notitle' }
plot keyentry with boxes lc rgb "#777777" title "worker (colour: backend)", \
     FILE using (column("peak_memory_bytes") / MIB / 2):($0 - 0.17):(column("peak_memory_bytes") / MIB / 2):(0.16): \
        (hex(backend_colour(stringcolumn("backend")))) with boxxyerror lc rgb variable notitle @RANGES, \
     "" using (0):0:(0):(0):ytic(sprintf("%s  %.0f", shown(stringcolumn("cell")), column("peak_memory_bytes") / MIB)) with boxxyerror lc rgb "#ffffff" notitle @SERVER
