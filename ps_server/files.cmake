lockstep_library(ps_server_lib
  FILES ps_server/server.c ps_server/server_send.c ps_server/peers.c
        ps_server/bsp.c ps_server/bsp_members.c
        ps_server/async.c ps_server/gather.c ps_server/vectors.c
        ps_server/store.c ps_server/thread_pool.c ps_server/answers.c
  LINKS squeeze ps_wire cluster_zmq device optim telemetry base Threads::Threads m)
add_executable(ps_server ps_server/main.c)
target_link_libraries(ps_server PRIVATE ps_server_lib cluster_mpi telemetry config version)
include(tests/long.cmake)
include(tests/sync_cases.cmake)
if(TARGET sync_cases)
  lockstep_library(ps_tests
    FILES tests/ps_servers.c tests/ps_workers.c
    LINKS ps_server_lib ps_worker sync_cases)
  lockstep_test(ps LINKS ps_tests)
  lockstep_test(ps_policy LINKS ps_tests)
  lockstep_test(ps_backup LINKS ps_tests)
  lockstep_test(ps_faults LINKS ps_tests)
  lockstep_test(ps_leave LINKS ps_server_lib)
  lockstep_test(ps_elastic LINKS ps_server_lib)
  lockstep_test(ps_malformed LINKS ps_tests)
  lockstep_test(ps_memory LINKS ps_tests)
  target_compile_definitions(test_ps_faults PRIVATE
                             PS_SERVER="$<TARGET_FILE:ps_server>")
  add_dependencies(test_ps_faults ps_server)
  # Test ps runs the cases with one server; these run the others, by name.
  foreach(cases sps_update dps dps_worker)
    add_test(NAME ps_${cases} COMMAND test_ps ${cases}_cases*)
  endforeach()
  # Over MPI. 2_3: two workers, three ranks in all; the last ones are servers.
  add_executable(test_ps_mpi tests/test_ps_mpi.c)
  target_link_libraries(test_ps_mpi PRIVATE ps_tests cluster_mpi)
  add_dependencies(lockstep_tests test_ps_mpi)
  # With a sanitizer only the largest case: a server for each worker.
  set(ps_mpi_worlds 2_3 4_5 3_6 2_5)
  if(LOCKSTEP_SANITIZE)
    set(ps_mpi_worlds 3_6)
  endif()
  foreach(case IN LISTS ps_mpi_worlds)
    string(REGEX MATCHALL "[0-9]" counts ${case})
    list(GET counts 0 workers)
    list(GET counts 1 ranks)
    add_test(NAME ps_mpi_${case}
             COMMAND ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0
                     OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
                     ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none
                     --mca mpi_yield_when_idle 1
                     -n ${ranks} $<TARGET_FILE:test_ps_mpi> ${workers})
    list(APPEND ps_mpi ps_mpi_${case})
  endforeach()
  lockstep_long(ps $<TARGET_FILE:test_ps> "*cases*")
  lockstep_long(ps_faults $<TARGET_FILE:test_ps_faults>)
  # There are many more processes than cores, so waiting threads must not spin.
  set_tests_properties(ps ps_sps_update ps_dps ps_dps_worker ps_policy ps_backup
                       ps_faults ps_malformed ps_memory ${ps_mpi} PROPERTIES TIMEOUT 900
                       ENVIRONMENT OMP_NUM_THREADS=1)
endif()
