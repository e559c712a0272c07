# Many tests, few compilations: with DSTUNE_TEST_GROUPS the tests of a folder are one program for each
# label, and its sources are compiled several at once. What a test of its own costs is mostly the
# templates that its neighbours instantiate too.
set(default OFF)
if(DEFINED ENV{DSTUNE_TEST_GROUPS})
  set(default $ENV{DSTUNE_TEST_GROUPS})
endif()
option(DSTUNE_TEST_GROUPS "Compile a folder's tests together: sooner from nothing, later after an edit" ${default})

# dstune_join_sources(OUT NAME SOURCES...): OUT is SOURCES, but several tests in one file of the build.
function(dstune_join_sources out name)
  set(at_once 8)
  set(tests)
  foreach(source IN LISTS ARGN)
    get_filename_component(source ${source} ABSOLUTE)
    list(APPEND tests ${source})
  endforeach()
  set(others ${tests})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER others EXCLUDE REGEX "_test\\.cpp$")
  list(LENGTH tests left)
  if(left LESS 2)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(number 0)
  set(files)
  while(left GREATER 0)
    list(SUBLIST tests 0 ${at_once} joined)
    list(REMOVE_ITEM tests ${joined})
    list(LENGTH tests left)
    math(EXPR number "${number} + 1")
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}.${number}.cpp)
    string(REPLACE ";" "," names "${joined}")
    add_custom_command(OUTPUT ${file}
      COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUT=${file} -DSOURCES=${names}
              -P ${PROJECT_SOURCE_DIR}/cmake/JoinTests.cmake
      DEPENDS ${joined} ${PROJECT_SOURCE_DIR}/cmake/JoinTests.cmake
      COMMENT "Joining ${name}.${number}.cpp" VERBATIM)
    list(APPEND files ${file})
  endwhile()
  add_custom_target(${name}.joined DEPENDS ${files}) # without dependencies: the files wait for no library
  set(${out} ${others} ${files} PARENT_SCOPE)
endfunction()

# dstune_add_to_group(LABEL SOURCE LIBRARIES...): to the program that the folder gets at its end.
function(dstune_add_to_group label source)
  get_property(is_known DIRECTORY PROPERTY dstune_${label}_sources SET)
  set_property(DIRECTORY APPEND PROPERTY dstune_${label}_sources ${source})
  set_property(DIRECTORY APPEND PROPERTY dstune_${label}_libraries ${ARGN})
  if(NOT is_known)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL dstune_add_group [[${label}]])")
  endif()
endfunction()

function(dstune_add_group label)
  get_property(sources DIRECTORY PROPERTY dstune_${label}_sources)
  get_property(libraries DIRECTORY PROPERTY dstune_${label}_libraries)
  list(REMOVE_DUPLICATES libraries)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REPLACE "/" "." name "${folder}.${label}_tests")
  string(REPLACE "unit" "${folder}" unit ${label}) # core/train, and core/train-threads
  dstune_add_unit_test(${name} ${unit} ${label} SOURCES ${sources} LIBRARIES ${libraries})
endfunction()
