lockstep_library(operands FILES allreduce/operands.c LINKS group)
lockstep_backend(allreduce
  FILES allreduce/algorithm.c allreduce/library_mpi.c
        allreduce/rollcall.c
  LINKS operands group telemetry cluster_mpi cluster config device base
        MPI::MPI_C Threads::Threads)
include(tests/long.cmake)
include(tests/says.cmake)
include(tests/group_cases.cmake)
include(tests/sync_cases.cmake)
if(NCCL_BUILT)
  lockstep_backend(allreduce_nccl
    FILES allreduce/library_nccl.c
    LINKS operands group_nccl cluster device base nccl)
endif()
lockstep_test(allreduce LINKS allreduce sync_cases)
lockstep_test(library_mpi LINKS allreduce group_cases)
if(TARGET test_allreduce)
  # Open MPI refuses to run as root, as in a container, without two variables.
  # It also leaves memory allocated, which a leak checker would report.
  set(mpirun ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0
             OMPI_ALLOW_RUN_AS_ROOT=1
             OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
             ${MPIEXEC_EXECUTABLE} --oversubscribe --bind-to none
             --mca mpi_yield_when_idle 1) # other tests want the cores
  set(mpi_worlds 2 3 4)
  if(LOCKSTEP_SANITIZE) # to check memory accesses, one size of world is enough
    set(mpi_worlds 3)
  endif()
  foreach(n IN LISTS mpi_worlds)
    add_test(NAME allreduce_${n}
             COMMAND ${mpirun} -n ${n} $<TARGET_FILE:test_allreduce>)
    add_test(NAME library_mpi_${n}
             COMMAND ${mpirun} -n ${n} $<TARGET_FILE:test_library_mpi>)
    set_tests_properties(allreduce_${n} library_mpi_${n} PROPERTIES TIMEOUT 300)
    lockstep_long(allreduce_${n}
                  ${mpirun} -n ${n} $<TARGET_FILE:test_allreduce>)
  endforeach()
  if(NOT LOCKSTEP_SANITIZE)
    add_test(NAME library_mpi_16
             COMMAND ${mpirun} -n 16 $<TARGET_FILE:test_library_mpi>)
    set_tests_properties(library_mpi_16 PROPERTIES TIMEOUT 300)
  endif()
  # Two groups at the same time; neither is the whole of MPI_COMM_WORLD.
  add_test(NAME library_mpi_halves
           COMMAND ${mpirun} -n 4 $<TARGET_FILE:test_library_mpi> halves)
  # Rank 2 does not take part: the others must end the job and name it.
  lockstep_says(library_mpi_missing 1 "dp: .* waiting for rank 2"
                ${mpirun} -n 3 $<TARGET_FILE:test_library_mpi> missing)
  # The same for rank 3, in a group of a part of the job.
  lockstep_says(library_mpi_part 1 "dp: .* waiting for rank 3"
                ${mpirun} -n 4 $<TARGET_FILE:test_library_mpi> part)
  lockstep_says(allreduce_missing 1
                "allreduce: .* waiting for rank 2 .step 2"
                ${mpirun} -n 3 $<TARGET_FILE:test_allreduce> missing)
  lockstep_says(cluster_mpi_missing 1
                "cluster: rank 2 of 3 did not come within 2 s"
                ${mpirun} -n 3 $<TARGET_FILE:test_allreduce> absent)
  set_tests_properties(allreduce library_mpi PROPERTIES
                       ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  set_tests_properties(library_mpi_halves PROPERTIES TIMEOUT 300)
endif()
