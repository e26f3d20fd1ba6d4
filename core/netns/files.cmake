# Emulated hosts: used by the launcher and by bench/link_perf.
lockstep_library(netns FILES core/netns/netns.c LINKS base)
lockstep_test(netns LINKS netns)
if(TARGET test_netns)
  set_tests_properties(netns PROPERTIES RUN_SERIAL ON)
endif()
