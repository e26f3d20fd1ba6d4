# ZeroMQ: sockets and keys for the servers, and the control plane without MPI.
lockstep_library(cluster_zmq
  FILES core/cluster/curve.c core/cluster/link.c core/cluster/mail_zmq.c core/cluster/hub.c
        core/cluster/hub_thread.c core/cluster/zmq.c
  LINKS cluster base PkgConfig::ZMQ Threads::Threads)
lockstep_test(hub LINKS cluster_zmq)
