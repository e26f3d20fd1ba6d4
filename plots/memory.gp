# memory.gp - peak memory of a worker and of a server.

load "style.gp"
set title "Peak memory of the worker, and of the server, that has most"
set xlabel "MiB" . below
load "bars.gp"
