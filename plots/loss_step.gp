# loss_step.gp - training loss by step, a line for each cell: reads curves.csv.

DIR = ARG1; OUT = ARG2
load "style.gp"
set title "Training loss by step"
set xlabel "step"
X = "step"; SCALE = 1; Y = "loss"
load "loss_curves.gp"
