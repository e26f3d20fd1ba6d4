# The kernels are compiled once for each instruction set and storage format;
# model/cpu/isa.c picks a table when the program runs.
set(model_isas baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND model_isas v3 v4 v4bf)
  set(model_tiles ON)
  set_source_files_properties(model/cpu/isa.c PROPERTIES
                              COMPILE_DEFINITIONS MODEL_X86)
endif()
set(model_flags_baseline "")
set(model_flags_v3 -march=x86-64-v3)
set(model_flags_v4 -march=x86-64-v4 -mprefer-vector-width=512)
set(model_flags_v4bf ${model_flags_v4} -mavx512bf16)

# kernels_NAME_FORMAT, compiled for `isa`.
function(model_kernels_unit name format isa)
  set(unit kernels_${name}_${format})
  string(TOUPPER ${format} number)
  add_library(${unit} OBJECT model/cpu/kernels.c)
  target_include_directories(${unit} PRIVATE ${CMAKE_SOURCE_DIR}
                                             ${CMAKE_SOURCE_DIR}/core)
  target_compile_definitions(${unit} PRIVATE
                             KERNELS_TABLE=${unit} KERNELS_ISA="${name}"
                             REAL_FORMAT=REAL_${number} ${ARGN})
  # Without -fno-thread-jumps GCC threads jumps through exp_of()'s clamps, and its
  # code then divides by the limits as well. Those results are denormal, and
  # each one traps into microcode.
  target_compile_options(${unit} PRIVATE ${model_flags_${isa}}
                         -fno-trapping-math
                         $<$<C_COMPILER_ID:GNU>:-fno-thread-jumps>)
  if(LOCKSTEP_SANITIZE) # with -O3, sanitizers take three times as long to build
    target_compile_options(${unit} PRIVATE -O2)
  endif()
  target_link_libraries(${unit} PRIVATE OpenMP::OpenMP_C)
endfunction()

set(model_kernels)
foreach(isa IN LISTS model_isas)
  foreach(format fp32 bf16 fp16)
    model_kernels_unit(${isa} ${format} ${isa})
    list(APPEND model_kernels $<TARGET_OBJECTS:kernels_${isa}_${format}>)
  endforeach()
endforeach()
if(model_tiles)
  model_kernels_unit(amx bf16 v4bf KERNELS_TILES)
  list(APPEND model_kernels $<TARGET_OBJECTS:kernels_amx_bf16>)
endif()

set(model_files
    model/backward.c model/forward.c model/head.c model/layers.c
    model/memory.c model/model.c model/pieces.c
    model/cpu/isa.c model/cpu/model_cpu.c model/cpu/product.c
    model/cpu/onednn.c model/cpu/onednn_${DNNL_MAJOR}.c)
set(model_cuda_files
    model/cuda/attention.cu model/cuda/attention_backward.cu
    model/cuda/current.c model/cuda/dnn.c model/cuda/dnn_attention.c
    model/cuda/dnn_graph.c model/cuda/embed.cu model/cuda/gelu.cu
    model/cuda/kernels_cuda.c model/cuda/loss.cu model/cuda/model_cuda.c
    model/cuda/norm.cu model/cuda/peak.c model/cuda/product_cuda.c
    model/cuda/routine.c model/cuda/vector.cu)
if(CUDA_BUILT)
  list(APPEND model_files ${model_cuda_files})
else() # `lockstep doctor` looks for cuDNN in every build
  list(APPEND model_files model/cuda/dnn.c)
endif()
include(model/checkpoint.cmake)

lockstep_library(model
  FILES ${model_files} ${model_kernels}
  LINKS base device checkpoint telemetry dnnl OpenMP::OpenMP_C m)

if(CUDA_BUILT)
  get_target_property(cublaslt CUDA::cublasLt IMPORTED_LOCATION)
  # The first choice is the cuDNN that the loader finds when the program runs;
  # this one is the second.
  find_library(LOCKSTEP_CUDNN NAMES libcudnn.so.9
               HINTS ${CUDAToolkit_LIBRARY_DIR})
  target_compile_definitions(model PRIVATE
    LOCKSTEP_CUDA LOCKSTEP_CUBLASLT="${cublaslt}"
    LOCKSTEP_CUDA_MAJOR=${CUDAToolkit_VERSION_MAJOR}
    LOCKSTEP_CUDNN="${LOCKSTEP_CUDNN}")
  target_link_libraries(model PUBLIC CUDA::cudart ${CMAKE_DL_LIBS})
else()
  target_compile_definitions(model PRIVATE LOCKSTEP_CUDNN="libcudnn.so.9"
                                           LOCKSTEP_CUDA_MAJOR=13)
  target_link_libraries(model PUBLIC ${CMAKE_DL_LIBS})
endif()

foreach(test attention model_ops model_grad model_formats model_blocks stages
        slices pieces zigzag)
  lockstep_test(${test} LINKS model pipeline)
  if(TARGET test_${test})
    target_sources(test_${test} PRIVATE tests/reference_gpt2.c tests/op_case.c
                                        tests/tiny_model.c)
  endif()
endforeach()
if(TARGET test_slices)
  target_sources(test_slices PRIVATE tests/slice_members.c tests/truth.c)
  target_sources(test_pieces PRIVATE tests/truth.c)
  target_link_libraries(test_slices PRIVATE law)
endif()
# Tests attention on tiles in plain C, with vectors of 4 and of 16 numbers,
# because no processor at hand has AMX.
if(TARGET test_attention)
  foreach(isa baseline v4)
    if(isa IN_LIST model_isas)
      model_kernels_unit(tiles_${isa} bf16 ${isa} KERNELS_TILES
                         TILES_PLAIN="tests/tiles_plain.h")
      target_sources(test_attention PRIVATE
                     $<TARGET_OBJECTS:kernels_tiles_${isa}_bf16>)
      target_compile_definitions(test_attention PRIVATE TILES_${isa})
    endif()
  endforeach()
endif()
lockstep_test(tiles LINKS model)
if(CUDA_BUILT)
  lockstep_test(cuda_ops LINKS model rule LABELS gpu)
  lockstep_test(cuda_products LINKS model LABELS gpu)
  lockstep_test(cuda_train LINKS model rule LABELS gpu)
  lockstep_test(cuda_cudnn LINKS model LABELS gpu)
  lockstep_test(cudnn_plans LINKS model)
  # Tests plans with a real cuDNN and a fake driver, which the loader finds
  # before NVIDIA's. Compares dnn.h's numbers with cuDNN's header.
  if(TARGET test_cudnn_plans)
    add_library(fake_driver SHARED tests/fake_driver.c)
    set_target_properties(fake_driver PROPERTIES
      OUTPUT_NAME cuda SOVERSION 1
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_driver)
    target_link_libraries(fake_driver PRIVATE ${CMAKE_DL_LIBS})
    add_dependencies(test_cudnn_plans fake_driver)
    set(paths LD_LIBRARY_PATH=path_list_prepend:${CMAKE_BINARY_DIR}/fake_driver)
    if(LOCKSTEP_CUDNN) # the second choice, after the caller's folders
      get_filename_component(cudnn_folder ${LOCKSTEP_CUDNN} DIRECTORY)
      list(APPEND paths LD_LIBRARY_PATH=path_list_append:${cudnn_folder})
    endif()
    set_property(TEST cudnn_plans PROPERTY ENVIRONMENT_MODIFICATION ${paths})
    find_path(CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(CUDNN_INCLUDE)
      target_sources(test_cudnn_plans PRIVATE tests/cudnn_numbers.c)
      target_include_directories(test_cudnn_plans SYSTEM PRIVATE
        ${CUDNN_INCLUDE} ${CUDAToolkit_INCLUDE_DIRS})
    endif()
  endif()
  find_package(Python3 COMPONENTS Interpreter)
  if(Python3_FOUND)
    get_filename_component(cuda_tools ${CMAKE_CUDA_COMPILER} DIRECTORY)
    find_program(LOCKSTEP_CUOBJDUMP cuobjdump HINTS ${cuda_tools})
    add_test(NAME cuda_sass
             COMMAND ${Python3_EXECUTABLE} tests/sass.py
                     ${CMAKE_CUDA_COMPILER_VERSION} ${LOCKSTEP_CUOBJDUMP}
                     $<TARGET_FILE:model> $<TARGET_FILE:rule>
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(cuda_sass PROPERTIES SKIP_RETURN_CODE 77)
    # These architectures allow fewer threads on a multiprocessor than the
    # others. If launch bounds are too large for one of them, ptxas warns, and
    # here a warning is an error.
    foreach(arch 75 86)
      add_test(NAME cuda_launch_bounds_${arch}
               COMMAND ${CMAKE_CUDA_COMPILER} -std=c++17 -O2 -I. -Icore
                       -Werror=all-warnings -arch=sm_${arch} -cubin
                       -o ${CMAKE_BINARY_DIR}/launch_bounds_${arch}.cubin
                       model/cuda/loss.cu
               WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    endforeach()
    add_test(NAME cuda_stores
             COMMAND ${Python3_EXECUTABLE} tests/stores.py
                     ${CMAKE_CUDA_COMPILER} model/cuda/embed.cu
                     model/cuda/gelu.cu model/cuda/loss.cu model/cuda/norm.cu
                     model/cuda/vector.cu
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endif()
endif()
