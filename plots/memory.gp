# memory.gp - peak memory of a worker and of a server.

load "style.gp"
set title "Highest peak of memory"
set xlabel "MiB" . below
load "bars.gp"
