# throughput.gp - tokens a second of each cell, with the median, the range from
# least to most, and every repeat as a point.

load "style.gp"
set title "Throughput of the job: median, range, repeats"
set xlabel "tokens per second" . below
unset key
load "bars.gp"
