# util_timeline.gp - the share of time in which each worker computes, by
# seconds. With a GPU, the share in which the GPU computes in each step, and as
# a thin line that in which it is in collectives: reads util.csv of a run, or of
# the first repeat of every cell.

DIR = ARG1; OUT = ARG2
METRICS = "gpu_compute_share compute_share" # the first that a worker has
SERVERS = 0
UNIT = 100
MOST = 105
BESIDE = "gpu_comm_share"
BESIDE_TITLE = "its GPU in collectives"
TITLE = "Utilisation of each worker by time (grey: evaluation)"
LABEL = "computing (%)"
load "timeline.gp"
