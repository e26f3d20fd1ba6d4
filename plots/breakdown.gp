# breakdown.gp - the time of a step by kind of work, stacked, with a bar for
# each cell. If workers have GPUs, the bar shows how long the GPUs compute. A
# thin bar below it shows how long they are in collectives, mostly while they
# compute.

load "style.gp"
set title "Time of a step by kind of work, mean of the workers"
set xlabel "milliseconds a step" . below
load "bars.gp"
