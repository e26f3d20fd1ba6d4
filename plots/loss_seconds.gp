# loss_seconds.gp - training loss by seconds, a line for each cell, with the
# moment at which each reaches the target loss.

load "style.gp"
set title title
set xlabel "seconds of training steps, without evaluation" . below
load "curves.gp"
