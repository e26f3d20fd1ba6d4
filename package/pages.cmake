# Manual pages and completions, which `lockstep` prints from its tables.
set(pages)
foreach(page lockstep trainer ps_server)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man/${page}.1
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
    COMMAND lockstep man ${page} > ${CMAKE_BINARY_DIR}/man/${page}.1
    DEPENDS lockstep ps_server explain_way)
  install(FILES ${CMAKE_BINARY_DIR}/man/${page}.1
          DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  list(APPEND pages ${CMAKE_BINARY_DIR}/man/${page}.1)
endforeach()
foreach(shell bash zsh)
  set(script ${CMAKE_BINARY_DIR}/lockstep.${shell})
  add_custom_command(OUTPUT ${script}
    COMMAND lockstep completion ${shell} > ${script}
    DEPENDS lockstep ${CMAKE_SOURCE_DIR}/plots)
  list(APPEND pages ${script})
endforeach()
# bash looks for a file with the name of the program.
set(completions ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
foreach(program lockstep trainer ps_server)
  install(FILES ${CMAKE_BINARY_DIR}/lockstep.bash DESTINATION ${completions}
          RENAME ${program})
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/lockstep.zsh RENAME _lockstep
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
add_custom_target(pages ALL DEPENDS ${pages})
