# Emulated hosts, for the launcher and for benchmarks of bench/.
lockstep_library(netns FILES core/netns/netns.c LINKS base)
lockstep_test(netns LINKS netns)
if(TARGET test_netns)
  set_tests_properties(netns PROPERTIES RUN_SERIAL ON)
endif()
