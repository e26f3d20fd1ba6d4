# Makes a C string of the page's template.
set(page_c ${CMAKE_BINARY_DIR}/page_template.c)
add_custom_command(OUTPUT ${page_c}
  COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_SOURCE_DIR}/core/virtual/page.html
          -DOUT=${page_c} -P ${CMAKE_SOURCE_DIR}/explain/page.cmake
  DEPENDS ${CMAKE_SOURCE_DIR}/core/virtual/page.html
          ${CMAKE_SOURCE_DIR}/explain/page.cmake)

add_executable(explain_way
  explain/main.c explain/message_virtual.c explain/servers.c explain/story.c
  explain/strategy.c explain/tell.c explain/textbook.c explain/verbs.c ${page_c})
target_link_libraries(explain_way PRIVATE
  backends ring_virtual ps_round textbook law cluster_virtual
  virtual optim device config base m)

# Not in sanitizer builds: the graders of labs use their own sanitizers, and one
# test in a browser is enough.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND AND NOT LOCKSTEP_SANITIZE)
  foreach(what pages browser)
    add_test(NAME explain_${what}
             COMMAND ${Python3_EXECUTABLE} tests/explain.py
                     ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${what}
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(explain_${what} PROPERTIES TIMEOUT 600 LABELS jobs
      SKIP_RETURN_CODE 77
      ENVIRONMENT "CC=${CMAKE_C_COMPILER};PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endif()
if(Python3_FOUND)
  add_test(NAME hostile_explain
           COMMAND ${Python3_EXECUTABLE} tests/hostile_explain.py
                   ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/lockstep
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(hostile_explain PROPERTIES TIMEOUT 300 LABELS jobs)
endif()
