# Many tests, few programs: the tests of a folder are one program for each label.
set(DSTUNE_TEST_UNIT 30) # sources of tests that are compiled together

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
  dstune_compile_together(${DSTUNE_TEST_UNIT} ${name})
endfunction()
