lockstep_library(cluster
  FILES core/cluster/cluster.c core/cluster/launched.c
        core/cluster/split.c core/cluster/work.c
  LINKS base Threads::Threads)
lockstep_library(cluster_virtual
  FILES core/cluster/virtual_cluster.c
  LINKS cluster virtual base)
# The control planes are libraries of their own: link only what you use.
lockstep_library(cluster_mpi
  FILES core/cluster/mpi.c
  LINKS cluster message_mpi base MPI::MPI_C)
lockstep_library(cluster_zmq
  FILES core/cluster/rendezvous.c core/cluster/rendezvous_thread.c core/cluster/zmq.c
  LINKS cluster message_zmq base PkgConfig::ZMQ Threads::Threads)
lockstep_test(rendezvous LINKS cluster_zmq)
lockstep_test(rendezvous_answers LINKS cluster_zmq)
lockstep_test(secret LINKS cluster_zmq secret)
