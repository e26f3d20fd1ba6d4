# Builds all graders, references and skeletons, so that the build's warnings cover them.
# labs/grade itself uses nothing of this.
lockstep_library(labs
  FILES labs/ask.c labs/disk.c labs/lab.c labs/machine.c labs/message.c labs/sandbox.c
  LINKS virtual base)
lockstep_test(sandbox LINKS labs)
lockstep_test(disk LINKS labs)

# The product's checkpoints, on the disk of lab 9: its calls of the system are replaced.
lockstep_test(folder_crash LINKS whole labs)
if(TARGET test_folder_crash)
  target_sources(test_folder_crash PRIVATE tests/noted_calls.c)
  foreach(call mkdir openat write fsync close rename renameat syscall unlink unlinkat
               rmdir)
    target_link_options(test_folder_crash PRIVATE -Wl,--wrap=${call})
  endforeach()
endif()

# Lab 0 is not graded. Every line that its program prints in the steps of the handout
# must stand there.
add_executable(house labs/by_hand/house.c)
add_test(NAME lab_by_hand
         COMMAND bash -c "
           says() { sed 's/^    //' labs/by_hand/README.md | grep -qxF -- \"$1\" ||
             { echo \"not in README.md: $1\"; exit 1; }; }
           { '$<TARGET_FILE:house>'; '$<TARGET_FILE:house>' 2 | head -3; } |
             while IFS= read -r line; do says \"$line\"; done &&
           test $('$<TARGET_FILE:house>' 4 | grep -c worker) = 12 &&
           ! '$<TARGET_FILE:house>' 3"
         WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})

file(GLOB lab_folders LIST_DIRECTORIES true CONFIGURE_DEPENDS labs/[0-9]*)
if(NOT LOCKSTEP_SANITIZE) # labs/grade adds sanitizers itself
  add_library(lab_check OBJECT labs/check.c)
  add_library(lab_around OBJECT labs/answer.c)
  target_link_libraries(lab_check PRIVATE labs)
  target_link_libraries(lab_around PRIVATE labs)
  foreach(folder ${lab_folders})
    get_filename_component(lab ${folder} NAME)
    add_executable(lab_${lab} ${folder}/grade.c ${folder}/ask.c)
    target_link_libraries(lab_${lab} PRIVATE lab_check labs m)
    set(programs lab_${lab})
    foreach(solution reference skeleton)
      add_executable(lab_${lab}_${solution} ${folder}/${solution}.c ${folder}/answer.c)
      target_link_libraries(lab_${lab}_${solution} PRIVATE lab_around labs m)
      list(APPEND programs lab_${lab}_${solution})
    endforeach()
    set_target_properties(${programs} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/labs)
  endforeach()
endif()

# Builds some references a second time, with other names for functions that the product
# or another lab defines, too.
set(renamed_03-shard shard_make shard_slice shard_rows shard_elements)
set(renamed_04-ring ring_bytes lab_exchange)
set(renamed_05-overlap bucket_cut)
foreach(lab 03-shard 04-ring 05-overlap)
  add_library(lab_${lab}_renamed STATIC labs/${lab}/reference.c)
  target_link_libraries(lab_${lab}_renamed PUBLIC labs m)
  foreach(name ${renamed_${lab}})
    target_compile_definitions(lab_${lab}_renamed PRIVATE ${name}=lab_${name})
  endforeach()
endforeach()
lockstep_test(labs LINKS lab_03-shard_renamed lab_04-ring_renamed
                         lab_05-overlap_renamed ps_wire horovod_ring sync)

include(tests/long.cmake)
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND NOT LOCKSTEP_SANITIZE)
  set(lab_tests export "load 4")
  foreach(folder ${lab_folders})
    get_filename_component(lab ${folder} NAME)
    string(REGEX MATCH "^[0-9]+" number ${lab})
    list(APPEND lab_tests ${number})
  endforeach()
  foreach(words ${lab_tests})
    separate_arguments(words)
    list(POP_FRONT words what)
    add_test(NAME lab_${what}
             COMMAND ${Python3_EXECUTABLE} tests/labs.py ${what}
                     ${CMAKE_BINARY_DIR}/labs ${words}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    if(NOT what STREQUAL load) # wrong solutions are compiled as for students
      lockstep_long(lab_${what} ${Python3_EXECUTABLE} tests/labs.py ${what}
                    ${CMAKE_BINARY_DIR}/labs)
    endif()
    set_tests_properties(lab_${what} PROPERTIES TIMEOUT 1200 ENVIRONMENT
      "CC=${CMAKE_C_COMPILER};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
  add_test(NAME lab_cheats
           COMMAND ${Python3_EXECUTABLE} tests/labs_cheats.py ${CMAKE_BINARY_DIR}/labs
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(lab_cheats PROPERTIES TIMEOUT 1200 ENVIRONMENT
    "CC=${CMAKE_C_COMPILER};PYTHONDONTWRITEBYTECODE=1")
  add_test(NAME lab_train
           COMMAND ${Python3_EXECUTABLE} tests/labs_train.py
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(lab_train PROPERTIES TIMEOUT 600 ENVIRONMENT
    "CC=${CMAKE_C_COMPILER};PYTHONDONTWRITEBYTECODE=1;\
LOCKSTEP=${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep")
  lockstep_long(lab_load ${Python3_EXECUTABLE} tests/labs.py load
                ${CMAKE_BINARY_DIR}/labs)
  lockstep_long(lab_arm64 ${Python3_EXECUTABLE} tests/labs_arm64.py)
  set_property(TEST lab_arm64_long PROPERTY TIMEOUT 10800)
endif()
