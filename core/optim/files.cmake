# No fused multiply-add here: every machine and every GPU must compute the same
# bits.
set(optim_flags "$<$<COMPILE_LANGUAGE:C>:-ffp-contract=off;-fopenmp-simd>"
                "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>")
lockstep_library(optim
  FILES core/optim/optim.c core/optim/lr_schedule.c
  LINKS base m)
target_compile_options(optim PRIVATE ${optim_flags})
lockstep_test(optim LINKS rule OpenMP::OpenMP_C)

# The rules for whole vectors on a device, which only workers use.
set(rule_files core/optim/rule.c core/optim/rule_cpu.c core/optim/segment.c
    core/optim/offload.c)
set(rule_cuda_files core/optim/rule_cuda.c core/optim/rule_kernels.cu)
if(CUDA_BUILT)
  list(APPEND rule_files ${rule_cuda_files})
endif()
lockstep_library(rule FILES ${rule_files}
                 LINKS optim device base OpenMP::OpenMP_C m)
target_compile_options(rule PRIVATE ${optim_flags})
lockstep_test(layered LINKS rule OpenMP::OpenMP_C)
lockstep_test(offload LINKS rule OpenMP::OpenMP_C)
if(CUDA_BUILT)
  target_compile_definitions(rule PRIVATE LOCKSTEP_CUDA)
endif()
