# The cases that every carrier must pass. Each carrier's files.cmake includes this file,
# and links its test with group_cases.
include_guard(GLOBAL)
include(tests/forked.cmake)
if(CMOCKA_FOUND)
  lockstep_library(group_cases
    FILES tests/group_cases.c tests/group_pairs.c tests/group_parts.c
          tests/group_world.c
    LINKS forked group cluster device base PkgConfig::CMOCKA m)
endif()
