# The cases that every backend must pass; each backend's files.cmake includes
# this and links its test with sync_cases.
include_guard(GLOBAL)
if(CMOCKA_FOUND)
  lockstep_library(sync_cases
    FILES tests/sync_cases.c tests/sync_world.c tests/shm_cluster.c
          tests/queue_device.c
    LINKS sync cluster config device optim base PkgConfig::CMOCKA m)
endif()
