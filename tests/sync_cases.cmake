# The cases that every backend must pass. Each backend's files.cmake includes this file,
# and links its test with sync_cases.
include_guard(GLOBAL)
include(tests/forked.cmake)
if(CMOCKA_FOUND)
  lockstep_library(sync_cases
    FILES tests/sync_cases.c tests/sync_world.c tests/queue_device.c
    LINKS forked sync cluster config device optim base PkgConfig::CMOCKA m)
endif()
