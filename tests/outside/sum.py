"""sum.py - the same as sum.c, in Python with ctypes.

    sum.py RANK WORLD tcp://127.0.0.1:29500     LD_LIBRARY_PATH has liblockstep.so.0

The structures are those of cluster/cluster.h and group/group.h.
"""

import ctypes as c
import sys


class ClusterConfig(c.Structure):
    _fields_ = [("rank", c.c_int), ("world", c.c_int), ("rendezvous", c.c_char_p),
                ("curve", c.c_char_p), ("servers", c.c_bool),
                ("timeout_s", c.c_double)]


class GroupJob(c.Structure):
    _fields_ = [("name", c.c_char_p), ("cluster", c.c_void_p), ("dev", c.c_void_p),
                ("spans", c.c_void_p), ("grain", c.c_size_t),
                ("largest", c.c_size_t), ("depth", c.c_size_t),
                ("thread", c.c_bool), ("pairs", c.c_bool),
                ("slice_bytes", c.c_size_t), ("iface", c.c_char_p),
                ("algorithm", c.c_int)]


class GroupVector(c.Structure):
    _fields_ = [("data", c.c_void_p), ("n", c.c_size_t), ("type", c.c_int),
                ("wire", c.c_int), ("scale", c.c_float),
                ("lengths", c.POINTER(c.c_size_t)), ("awaited", c.c_bool)]


library = c.CDLL("liblockstep.so.0")
library.fail_message.restype = c.c_char_p
library.group_open.restype = c.c_void_p
library.group_floats.restype = GroupVector


def check(good):
    if not good:
        sys.exit(f"sum.py: {library.fail_message().decode()}")


def main():
    rank, world, where = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
    rendezvous, job = c.c_void_p(), GroupJob(name=b"sum", depth=1)
    config = ClusterConfig(rank=rank, world=world, rendezvous=where, curve=b"",
                           timeout_s=20)
    if rank == 0:
        check(library.rendezvous_start(c.byref(rendezvous), where, b"") == 0)
    cluster, device = c.c_void_p(), c.c_void_p()
    zmq, ring = (c.byref(c.c_char.in_dll(library, name))
                 for name in ("cluster_zmq", "ring_tcp"))
    check(library.cluster_open(c.byref(cluster), zmq, c.byref(config)) == 0)
    check(library.device_open(c.byref(device), b"cpu") == 0)
    job.cluster, job.dev = cluster, device
    group = c.c_void_p(library.group_open(ring, c.byref(job)))
    check(group.value)

    v = (c.c_float * 1000)(*(i * (rank + 1) for i in range(1000)))
    vector = library.group_floats(v, c.c_size_t(len(v)))
    ticket = c.c_uint64()
    check(library.group_all_reduce(group, c.byref(vector), c.byref(ticket)) == 0)
    check(library.group_await(group, ticket) == 0)
    check(library.cluster_barrier(cluster) == 0)
    print(f"rank {rank}: v[999] = {v[999]:g}")
    library.group_close(c.byref(group))
    library.device_close(c.byref(device))
    library.cluster_close(c.byref(cluster))
    library.rendezvous_stop(c.byref(rendezvous))


main()
