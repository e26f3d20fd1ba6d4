lockstep_backend(homework
  FILES homework/homework.c homework/real_lab.c
  LINKS sync group cluster base)
include(tests/forked.cmake)
lockstep_test(real_lab LINKS homework horovod_ring labs forked)
