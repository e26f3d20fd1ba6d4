# MPI: the cluster under mpirun or srun, and mail.
lockstep_library(cluster_mpi
  FILES core/cluster/mpi.c core/cluster/mail_mpi.c core/cluster/carry.c
  LINKS cluster base MPI::MPI_C)
