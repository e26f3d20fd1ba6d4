# revision.cmake - writes OUT, a header with LOCKSTEP_REVISION: COMMIT+HASH. COMMIT is the
# last commit that changed sources, with ".dirty" if the working directory differs from it,
# and "none" without git. HASH is of the sources, so that two builds with the same HASH are
# the same, whatever was committed between them. A header that would not change keeps its
# time, so nothing is built again.
set(names *.c *.h *.cu *.cuh *.cpp *.def *.cmake CMakeLists.txt)
set(not_built "^(tests|build|labs/[0-9][^/]*)/")
execute_process(COMMAND git rev-list -1 HEAD -- ${names} OUTPUT_VARIABLE commit
                ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND git describe --always ${commit} OUTPUT_VARIABLE revision
                ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(commit AND revision)
  execute_process(COMMAND git -c core.quotepath=off ls-files --cached --others
                          --exclude-standard -- ${names}
                  OUTPUT_VARIABLE files OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND git status --porcelain -- ${names} OUTPUT_VARIABLE changed)
  string(REPLACE "\n" ";" files "${files}")
  if(changed)
    string(APPEND revision ".dirty")
  endif()
else()
  set(revision none)
  file(GLOB_RECURSE files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${names})
  get_filename_component(build ${OUT}/../../.. ABSOLUTE)
  file(RELATIVE_PATH build ${CMAKE_CURRENT_SOURCE_DIR} ${build})
  list(FILTER files EXCLUDE REGEX "^${build}/")
endif()
list(FILTER files EXCLUDE REGEX ${not_built})
list(SORT files)
set(all)
foreach(file IN LISTS files)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    file(SHA1 "${CMAKE_CURRENT_SOURCE_DIR}/${file}" hash)
    string(APPEND all "${file} ${hash}\n")
  endif()
endforeach()
string(SHA1 hash "${all}")
string(SUBSTRING ${hash} 0 8 hash)
file(CONFIGURE OUTPUT ${OUT}
     CONTENT "#define LOCKSTEP_REVISION \"${revision}+${hash}\"\n")
