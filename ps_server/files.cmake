lockstep_library(ps_server_lib
  FILES ps_server/server.c ps_server/peers.c ps_server/bsp.c
        ps_server/bsp_members.c ps_server/async.c ps_server/gather.c
        ps_server/vectors.c ps_server/store.c ps_server/team.c
  LINKS ps_wire cluster_zmq device optim telemetry base Threads::Threads m)
add_executable(ps_server ps_server/main.c)
target_link_libraries(ps_server PRIVATE ps_server_lib telemetry config)
include(tests/sync_cases.cmake)
if(TARGET sync_cases)
  lockstep_library(ps_tests
    FILES tests/ps_servers.c tests/ps_crew.c
    LINKS ps_server_lib ps_worker sync_cases)
  lockstep_test(ps LINKS ps_tests)
  lockstep_test(ps_policy LINKS ps_tests)
  lockstep_test(ps_faults LINKS ps_tests)
  lockstep_test(ps_liars LINKS ps_tests)
  lockstep_test(ps_memory LINKS ps_tests)
  target_compile_definitions(test_ps_faults PRIVATE
                             PS_SERVER="$<TARGET_FILE:ps_server>")
  add_dependencies(test_ps_faults ps_server)
  # The first runs the cases with one server; the others by name.
  foreach(cases sps_update dps dps_worker)
    add_test(NAME ps_${cases} COMMAND test_ps ${cases}_cases*)
  endforeach()
  set(ps_all ps ps_sps_update ps_dps ps_dps_worker ps_policy ps_faults
             ps_liars ps_memory)
  # Many more processes than cores: who waits must not spin.
  set_tests_properties(${ps_all} PROPERTIES TIMEOUT 900
                       ENVIRONMENT OMP_NUM_THREADS=1)
endif()
