# server_load.gp - processor time of each server, with the range of the repeats.

load "style.gp"
set title "Load of each server: processor time as a share of its threads' time"
set xlabel "processor time (%)"
unset key
load "bars.gp"
