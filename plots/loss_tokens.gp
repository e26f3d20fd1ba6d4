# loss_tokens.gp - training loss by tokens, a line for each cell.

load "style.gp"
set title "Training loss by tokens"
set xlabel "tokens of all workers (millions)" . below
load "curves.gp"
