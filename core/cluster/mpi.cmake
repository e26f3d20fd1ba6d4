# MPI: the cluster under mpirun or srun.
lockstep_library(cluster_mpi
  FILES core/cluster/mpi.c
  LINKS cluster base MPI::MPI_C)
