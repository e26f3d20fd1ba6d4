lockstep_library(message FILES core/message/message.c LINKS base)
# The transports are libraries of their own: link only what you use.
lockstep_library(message_mpi
  FILES core/message/mpi_call.c core/message/message_mpi.c
        core/message/carry.c
  LINKS message base MPI::MPI_C)
lockstep_library(message_zmq
  FILES core/message/curve.c core/message/connection.c core/message/auth.c
        core/message/host.c core/message/message_zmq.c
  LINKS message secret base PkgConfig::ZMQ Threads::Threads)
