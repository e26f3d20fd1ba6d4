lockstep_backend(homework
  FILES homework/homework.c homework/lowrank.c homework/real_lab.c
  LINKS squeezed sync group cluster base)
include(tests/forked.cmake)
lockstep_test(real_lab LINKS homework horovod_ring labs forked)
