# Emulated clusters: used by the launcher and by bench/link_perf.
lockstep_library(net FILES core/cluster/net.c LINKS base)
lockstep_test(net LINKS net)
if(TARGET test_net)
  set_tests_properties(net PROPERTIES RUN_SERIAL ON)
endif()
