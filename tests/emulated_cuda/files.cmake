# Compiles the project's CUDA sources, unchanged, as C++ for the CPU, and runs
# the tests of the GPU with them. ThreadSanitizer does not know our fibers, so
# its builds leave this out.
include(CheckLanguage)
check_language(CXX)
find_package(Python3 COMPONENTS Interpreter)
if(NOT CMAKE_CXX_COMPILER OR NOT Python3_FOUND OR NOT CMOCKA_FOUND
   OR LOCKSTEP_SANITIZE MATCHES thread)
  message(STATUS "Emulated CUDA: left out")
  return()
endif()
enable_language(CXX)
include(tests/long.cmake)
set(emulated tests/emulated_cuda)
set(emulated_warnings -Wall -Wextra -Wshadow)
if(LOCKSTEP_WERROR)
  list(APPEND emulated_warnings -Werror)
endif()

# Translations have the names of their sources, in a folder that is first in the
# include path.
set(translated ${CMAKE_BINARY_DIR}/emulated_cuda)
set(cuda_headers core/device/number.cuh model/cuda/attention.cuh
                 model/cuda/launch.cuh model/cuda/mask.cuh model/cuda/reduce.cuh
                 model/cuda/tensor.cuh)
set(cuda_sources ${device_cuda_files} ${rule_cuda_files} ${model_cuda_files})
set(cuda_host_files ${cuda_sources})
list(FILTER cuda_sources INCLUDE REGEX "[.]cu$")
list(FILTER cuda_host_files INCLUDE REGEX "[.]c$")
foreach(file IN LISTS cuda_headers cuda_sources)
  string(REGEX REPLACE "^core/" "" name ${file})
  string(REGEX REPLACE "[.]cu$" ".cpp" name ${name})
  add_custom_command(
    OUTPUT ${translated}/${name}
    COMMAND ${Python3_EXECUTABLE} ${emulated}/translate.py
            ${CMAKE_SOURCE_DIR}/${file} ${translated}/${name}
    DEPENDS ${file} ${emulated}/translate.py
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  if(file MATCHES "cuh$")
    list(APPEND translated_headers ${translated}/${name})
  elseif(file MATCHES "attention")
    list(APPEND translated_attention ${translated}/${name})
  else()
    list(APPEND translated_sources ${translated}/${name})
  endif()
endforeach()
add_custom_command(
  OUTPUT ${translated}/faults.cpp
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/${emulated}/translate.py
          ${CMAKE_SOURCE_DIR}/${emulated}/faults.cu ${translated}/faults.cpp
  DEPENDS ${emulated}/faults.cu ${emulated}/translate.py)
add_custom_command(
  OUTPUT ${translated}/layouts.cpp
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/${emulated}/translate.py
          ${CMAKE_SOURCE_DIR}/${emulated}/layouts.cu ${translated}/layouts.cpp
  DEPENDS ${emulated}/layouts.cu ${emulated}/translate.py)
add_custom_target(translated_headers DEPENDS ${translated_headers})

# The emulated cuBLASLt, which programs load by name like the real one. It uses
# the streams of the program's emulated runtime.
add_library(emulated_cublaslt MODULE ${emulated}/cublaslt.cpp)
target_link_libraries(emulated_cublaslt PRIVATE dnnl)

include(CheckCXXSourceRuns)
set(CMAKE_REQUIRED_FLAGS -march=x86-64-v3)
check_cxx_source_runs(
  "int main() { return !__builtin_cpu_supports(\"avx2\"); }" EMULATED_V3)
unset(CMAKE_REQUIRED_FLAGS)

# The headers with NVIDIA's names are in include/. -ffp-contract=off: a
# multiplication and an addition are two roundings, as the update on a GPU
# promises.
function(emulated_options target)
  target_include_directories(${target} BEFORE PRIVATE
    ${translated} ${CMAKE_SOURCE_DIR}/${emulated}/include ${CMAKE_SOURCE_DIR}
    ${CMAKE_SOURCE_DIR}/core)
  target_compile_features(${target} PRIVATE cxx_std_17)
  target_compile_definitions(${target} PRIVATE LOCKSTEP_CUDA
    LOCKSTEP_CUBLASLT="$<TARGET_FILE:emulated_cublaslt>"
    LOCKSTEP_CUDNN="./second_cudnn.so" LOCKSTEP_CUDA_MAJOR=13)
  target_compile_options(${target} PRIVATE -ffp-contract=off
    $<$<COMPILE_LANGUAGE:CXX>:-fno-strict-aliasing>
    "$<$<COMPILE_LANGUAGE:CXX>:-D_Noreturn=[[noreturn]]>" # base.h is C
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${EMULATED_V3}>>:-march=x86-64-v3>)
  add_dependencies(${target} translated_headers)
endfunction()
emulated_options(emulated_cublaslt)
target_compile_options(emulated_cublaslt PRIVATE ${emulated_warnings})

# Translated kernels. nvcc includes cuda_runtime.h by itself. These files have
# no warning options, since nvcc compiles their sources with warnings.
function(emulated_kernels target capability)
  add_library(${target} OBJECT ${ARGN})
  emulated_options(${target})
  target_compile_definitions(${target} PRIVATE __CUDA_ARCH__=${capability})
  target_compile_options(${target} PRIVATE -include cuda_runtime.h)
endfunction()
emulated_kernels(emulated_kernels 900 ${translated_sources})

set(fiber ucontext)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(fiber x86_64)
endif()
add_library(emulated_threads OBJECT
  ${emulated}/block.cpp ${emulated}/fiber_${fiber}.cpp ${emulated}/ptx.cpp)
emulated_options(emulated_threads)
target_compile_options(emulated_threads PRIVATE ${emulated_warnings})

# The host's code: the files that call CUDA, and those with tables that name it.
# They are linked before the libraries, and so replace the files of the same
# names in them.
add_library(emulated_host OBJECT core/device/device.c core/optim/rule.c
                                 model/model.c ${cuda_host_files})
emulated_options(emulated_host)

# GPUs of several generations, since their instructions for tensor cores differ.
# A sanitizer build tests one generation, and not cuda_train, because its jobs
# train.
set(older 750 700)
set(tested cuda_device cuda_ops cuda_products cuda_train)
if(LOCKSTEP_SANITIZE)
  set(older)
  list(REMOVE_ITEM tested cuda_train)
endif()
foreach(capability 900 ${older})
  emulated_kernels(emulated_attention_${capability} ${capability}
                   ${translated_attention})
  add_library(emulated_gpu_${capability} OBJECT ${emulated}/runtime.cpp)
  emulated_options(emulated_gpu_${capability})
  target_compile_definitions(emulated_gpu_${capability} PRIVATE
                             EMULATED_CAPABILITY=${capability})
  target_compile_options(emulated_gpu_${capability} PRIVATE
                         ${emulated_warnings})
endforeach()

# emulated_program(TARGET CAPABILITY): adds the emulation to a program.
function(emulated_program target capability)
  emulated_options(${target})
  foreach(part kernels attention_${capability} threads host gpu_${capability})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:emulated_${part}>)
  endforeach()
  # cuBLASLt uses the runtime of the program that loads it.
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON
                                             LINKER_LANGUAGE CXX)
  target_link_libraries(${target} PRIVATE model rule device optim base
                        ${CMAKE_DL_LIBS})
  add_dependencies(${target} emulated_cublaslt)
endfunction()

foreach(test ${tested})
  add_executable(test_${test}_emulated tests/test_${test}.c)
  emulated_program(test_${test}_emulated 900)
endforeach()
foreach(capability ${older})
  add_executable(test_cuda_ops_emulated_${capability} tests/test_cuda_ops.c)
  emulated_program(test_cuda_ops_emulated_${capability} ${capability})
endforeach()
emulated_kernels(emulated_faults 900 ${translated}/faults.cpp)
add_executable(test_emulated_cuda ${emulated}/test_emulated_cuda.c
                                  $<TARGET_OBJECTS:emulated_faults>)
emulated_program(test_emulated_cuda 900)

# layouts_cute prints the layouts that CuTe's headers define, and test_layouts
# reads them. It needs CuTe's headers (on PyPI in nvidia-cutlass and
# nvidia-cuda-cccl) and those of CUDA.
find_path(LOCKSTEP_CUTE cute/atom/mma_traits_sm80.hpp)
find_path(LOCKSTEP_CCCL cuda/std/utility HINTS ${CUDAToolkit_INCLUDE_DIRS}
          PATH_SUFFIXES cccl)
if(CUDA_BUILT AND LOCKSTEP_CUTE AND LOCKSTEP_CCCL)
  add_executable(layouts_cute ${emulated}/layouts_cute.cpp)
  target_compile_features(layouts_cute PRIVATE cxx_std_17)
  target_include_directories(layouts_cute SYSTEM PRIVATE
    ${LOCKSTEP_CUTE} ${LOCKSTEP_CCCL} ${CUDAToolkit_INCLUDE_DIRS})
  emulated_kernels(emulated_layouts 900 ${translated}/layouts.cpp)
  add_executable(test_layouts ${emulated}/test_layouts.c
                              $<TARGET_OBJECTS:emulated_layouts>)
  emulated_program(test_layouts 900)
  target_link_libraries(test_layouts PRIVATE PkgConfig::CMOCKA)
  add_test(NAME layouts_cute COMMAND
           sh -c "$<TARGET_FILE:layouts_cute> | $<TARGET_FILE:test_layouts>")
  add_dependencies(lockstep_tests layouts_cute test_layouts)
else()
  add_test(NAME layouts_cute COMMAND
           sh -c "echo 'skipped: needs CUDA and CuTe, -DLOCKSTEP_CUTE='; exit 77")
  set_tests_properties(layouts_cute PROPERTIES SKIP_RETURN_CODE 77)
endif()

# emulated_test(NAME PROGRAM WORDS... [ENV ...])
function(emulated_test name program)
  cmake_parse_arguments(A "" "" "WORDS;ENV" ${ARGN})
  target_link_libraries(test_${program} PRIVATE PkgConfig::CMOCKA m)
  add_test(NAME ${name} COMMAND test_${program} ${A_WORDS})
  set_tests_properties(${name} PROPERTIES TIMEOUT 1800 # on a busy machine
                       ENVIRONMENT "OMP_NUM_THREADS=1;${A_ENV}")
  add_dependencies(lockstep_tests test_${program})
endfunction()

# Each test runs twice: with threads in forward order and work as late as
# possible; and with threads in backward order, work done at once and a cuBLASLt
# without epilogues. Steps, layers and sequences are few, because the emulation
# changes fibers at every number that lanes exchange.
set(train_words 2 1 2)
set(backward EMULATED_CUDA_ORDER=backward EMULATED_CUDA_EAGER=1
             EMULATED_CUBLASLT=plain)
foreach(test ${tested})
  set(words)
  if(test STREQUAL cuda_train)
    set(words ${train_words})
  endif()
  emulated_test(${test}_emulated ${test}_emulated WORDS ${words})
  emulated_test(${test}_emulated_backward ${test}_emulated WORDS ${words}
                ENV ${backward})
endforeach()
if("cuda_train" IN_LIST tested)
  lockstep_long(cuda_train_emulated
                $<TARGET_FILE:test_cuda_train_emulated> 4 1 2)
  lockstep_long(cuda_train_emulated_backward
                ${CMAKE_COMMAND} -E env ${backward}
                $<TARGET_FILE:test_cuda_train_emulated> 4 1 2)
endif()
foreach(capability ${older})
  emulated_test(cuda_attention_emulated_${capability}
                cuda_ops_emulated_${capability} WORDS attention*)
endforeach()
emulated_test(cuda_products_refused cuda_products_emulated
              ENV EMULATED_CUBLASLT=refuses)
emulated_test(emulated_cuda emulated_cuda)
add_executable(test_cuda_waits ${emulated}/test_cuda_waits.c)
emulated_program(test_cuda_waits 900)
target_link_libraries(test_cuda_waits PRIVATE sync cluster config)
emulated_test(cuda_waits_emulated cuda_waits)
add_executable(test_cuda_tune ${emulated}/test_cuda_tune.c)
emulated_program(test_cuda_tune 900)
emulated_test(cuda_tune_emulated cuda_tune)

# The emulated cuDNN and the cuBLASLt that it asks for, in a folder of their own. Tests
# name it in LD_LIBRARY_PATH, so the loader looks there first.
set(emulated_cudnn ${CMAKE_BINARY_DIR}/fake_cudnn)
file(MAKE_DIRECTORY ${emulated_cudnn})
add_custom_command(TARGET emulated_cublaslt POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:emulated_cublaslt>
          ${emulated_cudnn}/libcublasLt.so.13)
add_library(emulated_cudnn MODULE ${emulated}/cudnn.cpp
                                  ${emulated}/cudnn_operations.cpp)
emulated_options(emulated_cudnn)
target_compile_options(emulated_cudnn PRIVATE ${emulated_warnings})
set_target_properties(emulated_cudnn PROPERTIES
  PREFIX "" OUTPUT_NAME libcudnn SUFFIX .so.9
  LIBRARY_OUTPUT_DIRECTORY ${emulated_cudnn})
add_executable(test_cuda_cudnn_emulated tests/test_cuda_cudnn.c)
emulated_program(test_cuda_cudnn_emulated 900)
add_dependencies(test_cuda_cudnn_emulated emulated_cudnn)
emulated_test(cuda_cudnn_emulated cuda_cudnn_emulated WORDS small
              ENV LD_LIBRARY_PATH=${emulated_cudnn})

# The bench of a GPU: it must run, without an invalid access to memory.
add_executable(layer_perf_emulated
  bench/layer_perf.c bench/bound.c bench/gpu_ops.c bench/layer_cuda.c
  bench/op_time.c bench/peer.c
  bench/workload.c)
emulated_program(layer_perf_emulated 900)
target_link_libraries(layer_perf_emulated PRIVATE share sync optim cluster config dnnl
                                                  OpenMP::OpenMP_C)
target_link_options(layer_perf_emulated PRIVATE -Wl,--wrap=product_run
                                                -Wl,--wrap=kernels_find)
target_compile_definitions(layer_perf_emulated PRIVATE
                           BENCH_PYTHON="${LOCKSTEP_TORCH_PYTHON}")
include(tests/says.cmake)
lockstep_says(cuda_products_broken 134
  "product .48, 72. = .48, 40. .40, 72. in fp32, epilogue bias: not supported"
  env EMULATED_CUBLASLT=broken OMP_NUM_THREADS=1
  $<TARGET_FILE:test_cuda_products_emulated>)
lockstep_says(layer_perf_emulated 0
  "attention by cuDNN, backward .* bound .*norm and AdamW .* bound"
  env LD_LIBRARY_PATH=${emulated_cudnn} $<TARGET_FILE:layer_perf_emulated>
  device=cuda fp16 model=nano batch=1 steps=1 peers=0 attention=cudnn)
add_dependencies(layer_perf_emulated emulated_cudnn)
set_tests_properties(layer_perf_emulated PROPERTIES TIMEOUT 600)
# The bench tries cuDNN with one sequence first.
lockstep_says(layer_perf_cudnn 0 "attention .1, 4, .*attention .2, 4, .*fp16 "
  env LD_LIBRARY_PATH=${emulated_cudnn} $<TARGET_FILE:layer_perf_emulated>
  device=cuda fp16 model=nano batch=2 steps=1 peers=0 detail=0
  attention=cudnn)
lockstep_says(layer_perf_cudnn_unsupported 1 "attention=cudnn: .*not supported"
  env LD_LIBRARY_PATH=${emulated_cudnn} EMULATED_CUDNN=unsupported
  $<TARGET_FILE:layer_perf_emulated> device=cuda fp16 model=nano batch=2
  peers=0 attention=cudnn)
# Without attention=cudnn, the bench must not load cuDNN.
lockstep_says(layer_perf_no_cudnn 0
  "attention, backward[^\n]* bound[^\n]*\n#   embedding "
  env LD_LIBRARY_PATH=${emulated_cudnn} $<TARGET_FILE:layer_perf_emulated>
  device=cuda fp16 model=nano batch=1 steps=1 peers=0)

# Whole jobs: the trainer with an emulated GPU, in a folder with the programs
# that start it. NCCL does not know this GPU, so a build with NCCL takes the fake
# one, and has only the jobs that use it.
set(programs ${CMAKE_BINARY_DIR}/bin/emulated)
add_executable(trainer_emulated train/main.c)
emulated_program(trainer_emulated 900)
if(NCCL_BUILT)
  add_library(fake_nccl OBJECT tests/fake_nccl.c) # with the real CUDA's headers
  target_include_directories(fake_nccl PRIVATE ${CMAKE_SOURCE_DIR}
                                               ${CMAKE_SOURCE_DIR}/core)
  target_link_libraries(fake_nccl PRIVATE nccl)
  target_sources(trainer_emulated PRIVATE $<TARGET_OBJECTS:fake_nccl>
                                          ${emulated}/nccl.cpp)
endif()
target_link_libraries(trainer_emulated PRIVATE train)
set_target_properties(trainer_emulated PROPERTIES
                      OUTPUT_NAME trainer RUNTIME_OUTPUT_DIRECTORY ${programs})
foreach(program lockstep ps_server)
  add_custom_command(OUTPUT ${programs}/${program}
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:${program}> ${programs}
    DEPENDS ${program})
  list(APPEND copies ${programs}/${program})
endforeach()
add_custom_target(emulated_programs DEPENDS ${copies} trainer_emulated)
add_executable(test_cuda_jobs_emulated ${emulated}/test_cuda_jobs.c tests/job.c)
target_compile_definitions(test_cuda_jobs_emulated PRIVATE
                           LOCKSTEP_BIN="${programs}"
                           FAKE_LIBRARIES="${CMAKE_BINARY_DIR}/fake")
target_link_libraries(test_cuda_jobs_emulated PRIVATE base PkgConfig::CJSON)
add_dependencies(test_cuda_jobs_emulated emulated_programs fake_cupti)
if(NCCL_BUILT)
  emulated_test(cuda_jobs_nccl cuda_jobs_emulated WORDS between_gpus)
  lockstep_long(cuda_jobs_nccl $<TARGET_FILE:test_cuda_jobs_emulated>
                between_gpus)
  set_property(TEST cuda_jobs_nccl PROPERTY LABELS jobs)
  return()
endif()
emulated_test(cuda_jobs_emulated cuda_jobs_emulated)
lockstep_long(cuda_jobs_emulated $<TARGET_FILE:test_cuda_jobs_emulated>)
lockstep_says(cuda_tune_job 0
  "to fp32, epilogue bias gradient: .* us by the fastest of 14 algorithms"
  env EMULATED_CUBLASLT=clocked ${programs}/lockstep train device=cuda tune=8
  model=nano layers=1 channels=32 heads=2 context=32 batch=2 steps=1 eval=0
  threads=1)
set_property(TEST cuda_jobs_emulated PROPERTY LABELS jobs)
add_dependencies(emulated_programs emulated_cudnn)
# cudnn_says(NAME MODE STATUS PATTERN WORDS...): a training with attention=cudnn
# and a cuDNN that does as MODE says.
function(cudnn_says name mode status pattern)
  lockstep_says(${name} ${status} "${pattern}"
    env LD_LIBRARY_PATH=${emulated_cudnn} EMULATED_CUDNN=${mode}
    ${programs}/lockstep train device=cuda attention=cudnn precision=bf16
    model=nano layers=1 channels=32 heads=2 context=32 batch=2 steps=2 eval=0
    threads=1 ${ARGN})
endfunction()
cudnn_says(cuda_cudnn_job "" 0
  "cuDNN 9.28.0: attention .2, 2, 32, 16. in bf16, workspace.*process 804.1 MiB")
cudnn_says(cuda_cudnn_old old 1
  "needs cuDNN 9.8 or newer, libcudnn.so.9 is 9.7.1; try: pip install -U")
cudnn_says(cuda_cudnn_stray stray 1
  "cuDNN 9.28.0 is for CUDA 99 and finds no libcublasLt.so.99; try: pip install")
cudnn_says(cuda_cudnn_unsupported unsupported 1
  "cuDNN 9.28.0 on .*: attention .2, 2, 32, 16.: no plan: not supported \
.no kernel of this engine.; try: attention=ours")
cudnn_says(cuda_cudnn_differs differs 1
  "attention .2, 2, 32, 16.: all engines .1. may differ between runs; \
try: attention=ours")
cudnn_says(cuda_cudnn_broken broken 1
  "cuDNN 9.10.0: its attention is wrong; try: cuDNN 9.15.1")
cudnn_says(cuda_cudnn_greedy greedy 1
  "cuDNN.s workspace: memory of GPU 0: 1.0 PiB more are needed.*, or attention=ours")
cudnn_says(cuda_cudnn_token "" 1
  "attention=cudnn: 1 token, cuDNN.s backward takes 2 or more; try: a longer"
  context=1)
cudnn_says(cuda_cudnn_fails fails 1 # and no signal
  "lockstep: attention=cudnn: .*: attention .2, 2, 32, 16.: execution failed .as the test asked.; try: attention=ours")
file(WRITE ${CMAKE_BINARY_DIR}/no_cudnn/libcudnn.so.9 "")
lockstep_says(cuda_cudnn_missing 1
  "attention=cudnn: .*libcudnn.so.9: .*; try: pip install nvidia-cudnn-cu13"
  env LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/no_cudnn ${programs}/lockstep train
  device=cuda attention=cudnn precision=bf16 model=nano steps=1)
if(NOT CUDA_BUILT) # the build knows no other cuDNN
  lockstep_says(doctor_cudnn 0
    "-  +cuDNN +attention=cudnn: .*libcudnn.so.9: .*try: pip install nvidia-cudnn-cu13"
    env LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/no_cudnn $<TARGET_FILE:lockstep>
    doctor)
endif()
# The loader's libcudnn.so.9 has no functions of cuDNN: the build's is used.
set(other_cudnn ${CMAKE_BINARY_DIR}/other_cudnn)
file(MAKE_DIRECTORY ${other_cudnn})
file(CREATE_LINK ${emulated_cudnn}/libcublasLt.so.13
     ${other_cudnn}/libcudnn.so.9 SYMBOLIC)
file(CREATE_LINK ${emulated_cudnn}/libcublasLt.so.13
     ${other_cudnn}/libcublasLt.so.13 SYMBOLIC)
file(CREATE_LINK ${emulated_cudnn}/libcudnn.so.9
     ${other_cudnn}/second_cudnn.so SYMBOLIC)
lockstep_says(cuda_cudnn_second 0 "cuDNN 9.28.0: attention .2, 2, 32, 16. in bf16"
  env -C ${other_cudnn} LD_LIBRARY_PATH=${other_cudnn} ${programs}/lockstep train
  device=cuda attention=cudnn precision=bf16 model=nano layers=1 channels=32
  heads=2 context=32 batch=2 steps=2 eval=0 threads=1)
if(TARGET fake_nvml AND NOT LOCKSTEP_SANITIZE)
  add_dependencies(emulated_programs fake_nvml)
  add_test(NAME gpu_drawn
           COMMAND ${Python3_EXECUTABLE} tests/gpu_drawn.py ${programs}/lockstep
                   ${CMAKE_BINARY_DIR}/fake
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(gpu_drawn PROPERTIES TIMEOUT 400 LABELS jobs)
endif()
# What `readers` and the tests above check for memory errors, too.
if(NOT LOCKSTEP_SANITIZE)
  add_test(NAME readers_emulated
           COMMAND ${Python3_EXECUTABLE} tests/readers.py ${programs}/trainer
                   ${programs}/ps_server WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  # check-gpu with the emulated GPU: the steps that are short.
  add_test(NAME check_gpu_emulated
           COMMAND bash ${CMAKE_SOURCE_DIR}/tests/check_gpu.sh
                   ${CMAKE_BINARY_DIR}/bin)
  set_tests_properties(readers_emulated check_gpu_emulated
                       PROPERTIES TIMEOUT 600 LABELS jobs)
endif()
