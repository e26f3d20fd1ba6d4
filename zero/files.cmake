lockstep_backend(zero
  FILES zero/zero.c zero/blocks.c zero/shards.c
  LINKS squeezed squeeze sync rule optim group cluster device base m)
include(tests/long.cmake)
include(tests/sync_cases.cmake)
foreach(test zero zero_late zero_order zero_shards)
  lockstep_test(${test} LINKS zero horovod_ring sync_cases law)
  if(TARGET test_${test})
    lockstep_long(${test} $<TARGET_FILE:test_${test}>)
  endif()
endforeach()
