# util_timeline.gp - the share of time in which each worker computes, by
# seconds: reads util.csv of a run, or of the first repeat of every cell. If a
# worker has a GPU, its line is the share of each step in which the GPU
# computes. A thin line is the share in which the GPU is in collectives.

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
