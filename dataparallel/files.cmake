lockstep_backend(dataparallel
  FILES dataparallel/dataparallel.c
  LINKS sync optim group cluster device base m)
include(tests/long.cmake)
include(tests/sync_cases.cmake)
lockstep_test(dataparallel LINKS dataparallel horovod_ring law sync_cases)
if(TARGET test_dataparallel)
  lockstep_long(dataparallel $<TARGET_FILE:test_dataparallel>)
endif()
