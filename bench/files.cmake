find_program(LOCKSTEP_TORCH_PYTHON python3 HINTS /usr/bin)
mark_as_advanced(LOCKSTEP_TORCH_PYTHON)
# The linker wraps the model's operations, so that layer_perf can time them.
add_executable(layer_perf bench/layer_perf.c bench/bound.c bench/op_time.c
                          bench/peer.c bench/workload.c)
target_link_libraries(layer_perf PRIVATE share model sync optim cluster config device
                                         dnnl OpenMP::OpenMP_C ${CMAKE_DL_LIBS})
target_link_options(layer_perf PRIVATE -Wl,--wrap=product_run
                                       -Wl,--wrap=kernels_find)
target_compile_definitions(layer_perf PRIVATE
                           BENCH_PYTHON="${LOCKSTEP_TORCH_PYTHON}")

if(CUDA_BUILT)
  target_sources(layer_perf PRIVATE bench/layer_cuda.c bench/gpu_ops.c)
  target_compile_definitions(layer_perf PRIVATE LOCKSTEP_CUDA)
  target_link_libraries(layer_perf PRIVATE rule)
  add_test(NAME layer_perf_cuda COMMAND layer_perf device=cuda model=nano
                                        batch=4 steps=3 peers=0)
  set_tests_properties(layer_perf_cuda PROPERTIES
                       LABELS gpu SKIP_RETURN_CODE 77 TIMEOUT 300)
endif()

include(tests/says.cmake)
lockstep_says(layer_perf_help 0 "Compares the time of a training step"
              $<TARGET_FILE:layer_perf> device=cuda --help)
lockstep_says(layer_perf_device 1
              "device=abacus: this build measures on device=cpu"
              $<TARGET_FILE:layer_perf> device=abacus)

# layer_perf compares with OpenBLAS. If its products take no time, it must be the fastest
# of all libraries. If it has no products, or there is no OpenBLAS, layer_perf must say so.
if(NOT LOCKSTEP_SANITIZE) # a sanitizer's library must be loaded before all others
  foreach(with sgemm nothing)
    add_library(openblas_${with} SHARED tests/fake_openblas.c)
    set_target_properties(openblas_${with} PROPERTIES
      OUTPUT_NAME openblas SUFFIX .so.0
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/openblas_${with})
  endforeach()
  target_compile_definitions(openblas_sgemm PRIVATE FAKE_SGEMM)
  set(bound $<TARGET_FILE:layer_perf> a fp32 threads=1 rounds=5 peers=0)
  lockstep_says(layer_perf_openblas 0
                "kernels for a fake.*fc dW +4 x .*OpenBLAS"
                env LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/openblas_sgemm ${bound})
  set(fake_python ${CMAKE_SOURCE_DIR}/tests/fake_torch_python.sh)
  lockstep_says(layer_perf_peer 0
                "fake, heads=4 channels=128 .*precision=fp32 threads=1 ours_ms=[0-9.]+"
                $<TARGET_FILE:layer_perf> a fp32 threads=1 rounds=5 detail=0
                peer_python=${fake_python})
  lockstep_says(layer_perf_no_openblas 0
                "OpenBLAS is left out: libopenblas.so.0: has no cblas_sgemm.*fc dW.*PyTorch is left out: /none cannot be run"
                env LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/openblas_nothing
                $<TARGET_FILE:layer_perf> a fp32 threads=1 rounds=5
                peer_python=/none)
endif()

add_executable(pair_perf bench/pair_perf.c bench/workers.c
                         bench/workload.c)
target_link_libraries(pair_perf PRIVATE backends cluster_mpi cluster_zmq model
                                        sync optim config device
                                        OpenMP::OpenMP_C)
add_dependencies(layer_perf pair_perf)
if(mpirun)
  lockstep_says(pair_perf 0 "ring .* of local's rate"
                ${mpirun} -n 2 $<TARGET_FILE:pair_perf> rounds=1 steps=2)
endif()

add_executable(span_perf bench/span_perf.c bench/workload.c)
target_link_libraries(span_perf PRIVATE sync model optim telemetry cluster config
                                        device OpenMP::OpenMP_C)
lockstep_says(span_perf 0 "cost_%.*nano +1 +[0-9.]+ +[0-9.]+ "
              $<TARGET_FILE:span_perf> nano 1 2)

add_executable(squeeze_perf bench/squeeze_perf.c bench/peer.c)
target_link_libraries(squeeze_perf PRIVATE share squeeze config)
target_compile_definitions(squeeze_perf PRIVATE
                           BENCH_PYTHON="${LOCKSTEP_TORCH_PYTHON}")
lockstep_says(squeeze_perf 0
              "memcpy .*topk .*int8 .*sign .*power .*fake, rounds=1 .*demo=[0-9.]+"
              $<TARGET_FILE:squeeze_perf> mb=0.1 rounds=1
              peer_python=${CMAKE_SOURCE_DIR}/tests/fake_torch_python.sh)

add_executable(sync_perf bench/sync_perf.c bench/sync_plan.c bench/workers.c
                         bench/tested.c bench/echo.c bench/loop.c bench/openmpi.c
                         bench/table.c)
target_link_libraries(sync_perf PRIVATE law backends ps_server_lib cluster_mpi
                                        cluster_zmq netns sync)
# Small sizes only: sync_perf runs and no result is wrong.
add_test(NAME sync_perf COMMAND sync_perf workers=3 max_mb=0.1 rounds=1
                                wire=fp16)
lockstep_says(sync_perf_word 1 "unknown key rouns; nearest: rounds; .* lockstep bench sync --help"
              $<TARGET_FILE:sync_perf> rouns=4)
lockstep_says(sync_perf_row 1 "sync=rign: unknown name rign; nearest: ring; .* lockstep bench sync --help"
              $<TARGET_FILE:sync_perf> sync=rign)
# A setting for all rows leaves out a row that does not read it, with a message.
lockstep_says(sync_perf_left_out 0 "dataparallel is left out: .* read wire=bf16"
              $<TARGET_FILE:sync_perf> workers=2 min_bytes=64 max_mb=0.0001
              rounds=1 wire=bf16)
# Rows of MPI require mpirun. Without it they are left out, with a message.
lockstep_says(sync_perf_transport 1 "ring: transport=zmq: it has no such carrier"
              $<TARGET_FILE:sync_perf> sync=ring ring.transport=zmq max_mb=0.0001)
lockstep_says(sync_perf_without_mpi 0 "allreduce, zero-mpi, outer-mpi, mpi.. are left out"
              $<TARGET_FILE:sync_perf> workers=2 min_bytes=64 max_mb=0.0001
              rounds=1)
# If a NaN of the first worker makes all workers skip a step, results are wrong.
foreach(backend sps dps ring ring-shm)
  lockstep_says(sync_perf_wrong_${backend} 1 "[0-9]+ results are wrong"
                $<TARGET_FILE:sync_perf> workers=2 sync=${backend} min_bytes=64
                max_mb=0.0001 rounds=1 inject=nan:5)
endforeach()
if(mpirun)
  add_test(NAME sync_perf_mpi COMMAND ${mpirun} -n 2 $<TARGET_FILE:sync_perf>
                                      max_mb=0.1 factor=32 rounds=1)
  set_tests_properties(sync_perf_mpi PROPERTIES TIMEOUT 300)
endif()
set_tests_properties(sync_perf PROPERTIES TIMEOUT 300)

# A size is measured once.
lockstep_says(sync_perf_sizes 0 "size 1 of 1: 4 bytes"
              $<TARGET_FILE:sync_perf> max_mb=0.000004 rounds=1 sync=ring)
lockstep_says(layer_perf_rounds 1 ": rounds=0; try: 5 to"
              $<TARGET_FILE:layer_perf> rounds=0)

add_executable(collect_perf bench/collect_perf.c bench/collect_plan.c
                            bench/collective.c bench/table.c bench/workers.c
                            bench/openmpi.c)
target_link_libraries(collect_perf PRIVATE textbook allreduce horovod_ring sync
                                           cluster_mpi cluster_zmq telemetry
                                           config device)
# Small sizes only: results and bytes of all rows are right.
lockstep_says(collect_perf 0 "# scatter, 3 workers.* 0 +[0-9]+ +ok  tree-shm"
              $<TARGET_FILE:collect_perf> workers=3 max_mb=0.1 rounds=1
              slice_kb=8)
foreach(verb all_reduce reduce_scatter all_gather broadcast reduce scatter
             gather all_to_all sendrecv)
  lockstep_says(collect_perf_wrong_${verb} 1 "[0-9]+ results or byte counts are wrong"
                $<TARGET_FILE:collect_perf> workers=2 op=${verb} min_bytes=64
                max_mb=0.0001 rounds=1 spoil=1)
endforeach()
lockstep_says(collect_perf_op 1 "op=bcast: unknown name bcast; nearest: broadcast"
              $<TARGET_FILE:collect_perf> op=bcast)
lockstep_says(collect_perf_rows 1 "rows=ring-tcp: none of these rows has gather"
              $<TARGET_FILE:collect_perf> op=gather rows=ring-tcp)
lockstep_says(collect_perf_without_mpi 1 "openmpi requires MPI; try: lockstep bench"
              $<TARGET_FILE:collect_perf> rows=ring-tcp,openmpi)
if(mpirun)
  foreach(n 2 4)
    lockstep_says(collect_perf_mpi_${n} 0
                  "gather, ${n} workers.*openmpi.*chain-mpi.*tree-mpi"
                  ${mpirun} -n ${n} $<TARGET_FILE:collect_perf> max_mb=0.1
                  factor=128 rounds=1)
  endforeach()
endif()

add_executable(link_perf bench/link_perf.c)
target_link_libraries(link_perf PRIVATE law netns)

# The programs are not in PATH: their help and errors name the command.
foreach(what cpu gpu sync collect squeeze link)
  lockstep_says(bench_${what}_help 0 "lockstep bench ${what} "
                bash -c "\"$1\" bench ${what} --help && ! \"$1\" bench ${what} --help | grep _perf" -
                $<TARGET_FILE:lockstep>)
endforeach()
