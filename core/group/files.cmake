lockstep_library(group
  FILES core/group/group.c
  LINKS cluster base Threads::Threads)
