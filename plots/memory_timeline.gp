# memory_timeline.gp - resident memory of each worker and server by seconds, in
# a run or in the first repeat of every cell.

load "style.gp"
title = "Memory of each worker and server by time"
axis = "MiB"
set yrange [0:top > 0 ? 1.15 * top : 1]
set ytics tic
load "timeline.gp"
