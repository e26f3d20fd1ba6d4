lockstep_library(squeeze
  FILES squeeze/squeeze.c squeeze/topk.c squeeze/int8.c squeeze/sign.c
  LINKS group config base m)
lockstep_backend(squeezed
  FILES squeeze/squeezed.c squeeze/units.c
  LINKS squeeze sync group telemetry cluster config base)
# No fused multiply-add, so that workers on different machines decode the same
# numbers.
foreach(library squeeze squeezed)
  target_compile_options(${library} PRIVATE -ffp-contract=off)
endforeach()
lockstep_test(squeeze LINKS squeeze)
include(tests/sync_cases.cmake)
lockstep_test(squeezed LINKS squeezed horovod_ring sync_cases)
include(tests/long.cmake)
if(TARGET test_squeezed)
  lockstep_long(squeezed $<TARGET_FILE:test_squeezed>)
endif()
if(COMMAND lockstep_fuzz)
  lockstep_fuzz(squeeze LINKS squeeze)
endif()
