lockstep_backend(horovod_ring
  FILES horovod_ring/ring_tcp.c horovod_ring/ring_flow.c
        horovod_ring/flow.c horovod_ring/plan.c horovod_ring/ring_wire.c
        horovod_ring/streams.c horovod_ring/streams_tcp.c horovod_ring/streams_shm.c
        horovod_ring/meet.c horovod_ring/socket.c horovod_ring/pairs.c
        horovod_ring/ring_shm.c horovod_ring/shm_steps.c
        horovod_ring/counters.c horovod_ring/regions.c
  LINKS group telemetry cluster device secret base Threads::Threads
        OpenMP::OpenMP_C)
lockstep_library(ring_virtual
  FILES horovod_ring/ring_virtual.c
  LINKS horovod_ring cluster_virtual virtual base)
include(tests/sync_cases.cmake)
include(tests/group_cases.cmake)
if(NCCL_BUILT)
  lockstep_backend(horovod_ring_nccl
    FILES horovod_ring/ring_nccl.c
    LINKS horovod_ring group_nccl cluster device base nccl)
  # The linker takes the functions of tests/fake_nccl.c before those of NCCL.
  lockstep_test(nccl LINKS horovod_ring_nccl allreduce_nccl sync_cases
                LABELS threads)
  lockstep_test(nccl_carriers LINKS horovod_ring_nccl allreduce_nccl group_cases
                LABELS threads)
  if(TARGET test_nccl)
    target_sources(test_nccl PRIVATE tests/fake_nccl.c)
    target_sources(test_nccl_carriers PRIVATE tests/fake_nccl.c
                                              tests/queue_device.c)
    target_link_options(test_nccl_carriers PRIVATE -Wl,--wrap=sleep_ns)
  endif()
endif()
include(tests/long.cmake)
foreach(test ring ring_shared)
  lockstep_test(${test} LINKS horovod_ring sync_cases)
  if(TARGET test_${test})
    lockstep_long(${test} $<TARGET_FILE:test_${test}>)
  endif()
endforeach()
lockstep_test(shared_order LINKS horovod_ring forked)
lockstep_test(flow LINKS horovod_ring)
if(TARGET test_flow)
  target_link_options(test_flow PRIVATE -Wl,--wrap=now_ns)
endif()
lockstep_test(group LINKS horovod_ring group_cases)
if(TARGET test_group)
  add_test(NAME group_faults COMMAND test_group faults_*)
  set_tests_properties(group_faults PROPERTIES TIMEOUT 300)
endif()
lockstep_test(ring_virtual LINKS ring_virtual zero law group_cases sync_cases
                                 virtual_world)
lockstep_test(mistakes LINKS horovod_ring sync_cases)
lockstep_test(own_norm LINKS horovod_ring sync_cases)
