# Worlds of forked test workers.
include_guard(GLOBAL)
if(CMOCKA_FOUND)
  lockstep_library(forked
    FILES tests/forked.c tests/shm_cluster.c
    LINKS cluster base OpenMP::OpenMP_C)
  lockstep_library(virtual_world
    FILES tests/virtual_world.c
    LINKS cluster_virtual virtual base)
endif()
