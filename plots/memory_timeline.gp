# memory_timeline.gp - resident memory of each worker and server by seconds:
# reads util.csv of a run, or of the first repeat of every cell.

DIR = ARG1; OUT = ARG2
METRICS = "resident_bytes"
SERVERS = 1
UNIT = 1 / 1048576.0
TITLE = "Memory of each worker and server by time"
LABEL = "MiB"
load "timeline.gp"
