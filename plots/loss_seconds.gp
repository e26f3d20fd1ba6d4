# loss_seconds.gp - training loss by seconds, a line a cell: reads curves.csv.

DIR = ARG1; OUT = ARG2
load "style.gp"
set title "Training loss by seconds"
set xlabel "wall time (s)"
X = "time_s"; SCALE = 1
load "loss_curves.gp"
