lockstep_library(group
  FILES core/group/group.c
  LINKS cluster base Threads::Threads)
if(NCCL_BUILT)
  lockstep_library(group_nccl
    FILES core/group/nccl.c core/group/nccl_queue.c
    LINKS group cluster device base nccl)
endif()
