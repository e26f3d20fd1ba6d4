# bytes.gp - bytes that a worker sends in a step, with the law, and the bytes
# that a server with its own link receives.

load "style.gp"
set title "Bytes of a step that a worker sends"
set xlabel "MiB, payload"
load "bars.gp"
