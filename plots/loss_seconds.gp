# loss_seconds.gp - training loss by seconds, a line for each cell, with the
# moment at which each reaches the target loss: reads curves.csv, runs.csv and
# table.csv.

DIR = ARG1; OUT = ARG2
load "style.gp"
TABLE = DIR . "/table.csv"
target = value_at(TABLE, word(values_of(TABLE, "cell"), 1), "target_loss_nats")
set title "Training loss by seconds, mean of ten steps" . (target eq "" ? "" : " (points: loss " . target . " reached)")
set xlabel "seconds of training steps, without evaluation"
X = "train_s"; SCALE = 1; Y = "loss_smooth"
if (strlen(target)) {
    set arrow 1 from graph 0, first target + 0 to graph 1, first target + 0 nohead dt 2 lw 1.5 lc rgb "#555555"
}
load "loss_curves.gp"
