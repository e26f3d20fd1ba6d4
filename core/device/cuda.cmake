# CUDA, if it is wanted and found: sets CUDA_BUILT, NCCL_BUILT.
#
#     LOCKSTEP_CUDA       AUTO: if found; ON: an error if not found; OFF
#     LOCKSTEP_CUDA_ARCHS compute capabilities; all: those of the list below
#                         that this toolkit can compile for
#
# With AUTO, builds with a sanitizer leave CUDA out: a sanitizer does not see
# what a GPU does.
set(LOCKSTEP_CUDA AUTO CACHE STRING "GPU code: AUTO, ON or OFF")
set(LOCKSTEP_CUDA_ARCHS all CACHE STRING "all, or a list such as 80;90")
set(CUDA_BUILT OFF)
set(NCCL_BUILT OFF)
if(NOT LOCKSTEP_CUDA OR (LOCKSTEP_CUDA STREQUAL "AUTO" AND LOCKSTEP_SANITIZE))
  return()
endif()

find_program(LOCKSTEP_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH
             PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(LOCKSTEP_NVCC AND LOCKSTEP_CUDA_ARCHS STREQUAL "all")
  # Makes machine code for each, and PTX of the last one for newer GPUs.
  execute_process(COMMAND ${LOCKSTEP_NVCC} --list-gpu-arch
                  OUTPUT_VARIABLE known ERROR_QUIET)
  set(archs)
  foreach(arch 70 75 80 86 89 90 100 110 120)
    if(known MATCHES "compute_${arch}[^0-9a-z]")
      list(APPEND archs ${arch}-real)
      set(last ${arch})
    endif()
  endforeach()
  list(APPEND archs ${last}-virtual)
  set(CMAKE_CUDA_ARCHITECTURES ${archs})
else()
  set(CMAKE_CUDA_ARCHITECTURES ${LOCKSTEP_CUDA_ARCHS})
endif()

set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
if(LOCKSTEP_NVCC)
  set(CMAKE_CUDA_COMPILER ${LOCKSTEP_NVCC})
endif()
if(LOCKSTEP_CUDA STREQUAL "ON")
  enable_language(CUDA)
else()
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(STATUS "CUDA: not found, device=cpu only")
    return()
  endif()
  enable_language(CUDA)
endif()
find_package(CUDAToolkit REQUIRED)
add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
if(LOCKSTEP_WERROR)
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>"
                      "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror>")
endif()
set(CUDA_BUILT ON)

find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
if(NCCL_INCLUDE AND NCCL_LIBRARY)
  add_library(nccl INTERFACE)
  target_include_directories(nccl SYSTEM INTERFACE ${NCCL_INCLUDE})
  target_link_libraries(nccl INTERFACE ${NCCL_LIBRARY} CUDA::cudart)
  set(NCCL_BUILT ON)
endif()
message(STATUS "CUDA ${CUDAToolkit_VERSION}: ${CMAKE_CUDA_ARCHITECTURES}; "
               "NCCL: ${NCCL_BUILT}")
