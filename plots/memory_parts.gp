# memory_parts.gp - predicted memory of a worker, stacked by part, with the
# measured peak.

load "style.gp"
set title "Memory of a worker: predicted by part, and measured peak"
set xlabel "MB"
load "bars.gp"
