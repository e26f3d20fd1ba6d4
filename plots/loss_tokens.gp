# loss_tokens.gp - training loss by tokens, a line for each cell: reads
# curves.csv.

DIR = ARG1; OUT = ARG2
load "style.gp"
set title "Training loss by tokens"
set xlabel "tokens of all workers (millions)"
X = "tokens"; SCALE = 1e-6; Y = "loss"
load "loss_curves.gp"
