# Many tests, few programs: with DSTUNE_TEST_GROUPS the tests of a folder are one program for each
# label, which is linked once, and starts once under a sanitizer.
set(default OFF)
if(DEFINED ENV{DSTUNE_TEST_GROUPS})
  set(default $ENV{DSTUNE_TEST_GROUPS})
endif()
option(DSTUNE_TEST_GROUPS "Link a folder's tests together: sooner from nothing, later after an edit" ${default})

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
