# loss_step.gp - training loss by step, a line for each cell.

load "style.gp"
set title "Training loss by step"
set xlabel "step" . below
load "curves.gp"
