lockstep_library(group
  FILES core/group/group.c core/group/supported.c core/group/chunk.c
  LINKS cluster base Threads::Threads)
include(tests/forked.cmake)
lockstep_test(part LINKS group forked)
if(NCCL_BUILT)
  lockstep_library(group_nccl
    FILES core/group/nccl.c
    LINKS group cluster device base nccl)
endif()
