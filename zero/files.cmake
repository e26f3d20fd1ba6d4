lockstep_backend(zero
  FILES zero/zero.c zero/shards.c
  LINKS sync rule optim group cluster base m)
include(tests/long.cmake)
include(tests/sync_cases.cmake)
lockstep_test(zero LINKS zero horovod_ring sync_cases)
if(TARGET test_zero)
  lockstep_long(zero $<TARGET_FILE:test_zero>)
endif()
