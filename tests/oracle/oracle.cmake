# Tests the model against PyTorch's numbers in tests/golden; and, if PyTorch is installed,
# these numbers against PyTorch. Debian's interpreter comes first, because python3-torch
# is a module of it.
if(TARGET model AND TARGET optim)
  lockstep_test(oracle LINKS model optim)
endif()
find_program(LOCKSTEP_TORCH_PYTHON python3 HINTS /usr/bin)
mark_as_advanced(LOCKSTEP_TORCH_PYTHON)
if(LOCKSTEP_TORCH_PYTHON)
  add_test(NAME oracle_pytorch
           COMMAND ${LOCKSTEP_TORCH_PYTHON} tests/oracle/gpt2_torch.py check
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(oracle_pytorch PROPERTIES SKIP_RETURN_CODE 77
                                                 TIMEOUT 300)
endif()
# Compares with DistributedDataParallel on the same model and batches, if PyTorch is
# installed.
if(LOCKSTEP_TORCH_PYTHON)
  add_test(NAME oracle_ddp
           COMMAND ${LOCKSTEP_TORCH_PYTHON} tests/oracle/gpt2_torch_ddp.py check
                   ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(oracle_ddp PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300
                                             LABELS jobs)
endif()
# Five steps of PowerSGD, by PyTorch's hook.
if(LOCKSTEP_TORCH_PYTHON)
  add_test(NAME oracle_powersgd
           COMMAND ${LOCKSTEP_TORCH_PYTHON} tests/oracle/powersgd.py check
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(oracle_powersgd PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120)
endif()
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME oracle_layered
           COMMAND ${Python3_EXECUTABLE} tests/oracle/layered.py
                   tests/golden/layered.txt
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME oracle_demo
           COMMAND ${Python3_EXECUTABLE} tests/oracle/demo.py tests/golden/demo.txt
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME oracle_onebit_adam
           COMMAND ${Python3_EXECUTABLE} tests/oracle/onebit_adam.py
                   tests/golden/onebit_adam.txt
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set(bpe "${Python3_EXECUTABLE} tests/oracle/gpt2_bpe.py")
  add_test(NAME oracle_bpe
           COMMAND bash -o pipefail -c "${bpe} golden tests/golden/small.bpe | \
cmp - tests/golden/small_bpe.txt"
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set(pieces "${Python3_EXECUTABLE} tests/oracle/bert_wordpiece.py")
  add_test(NAME oracle_wordpiece
           COMMAND bash -o pipefail -c
                   "${pieces} golden tests/golden/small_vocab.txt | \
cmp - tests/golden/small_pieces.txt"
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endif()
