# util_timeline.gp - compute share of each worker ten times a second, of its GPU
# in each step where it has one: reads util.csv of a run, or of the first repeat
# of every k-th cell, seven at most.

DIR = ARG1; OUT = ARG2
METRICS = "gpu_compute_share compute_share" # the first that a worker has
SERVERS = 0
UNIT = 100
MOST = 105
TITLE = "Utilisation of each worker, by seconds since training began (grey: evaluation)"
LABEL = "computing (%)"
load "timeline.gp"
