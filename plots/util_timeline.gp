# util_timeline.gp - the share of time in which each worker computes, by
# seconds, in a run or in the first repeat of every cell. If a worker has a GPU,
# its line is the share of each step in which the GPU computes. A thin line is
# the share in which the GPU is in collectives.

load "style.gp"
title = "Utilisation of each worker by time (grey: evaluation)"
axis = "computing (%)"
set yrange [0:105]
set ytics 0, 50, 100
load "timeline.gp"
