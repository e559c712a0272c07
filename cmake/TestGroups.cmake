# Many tests, few programs, few compilations: the tests of a folder are one program for each label, whose
# sources are compiled together, so that what they all include is parsed once. A test file therefore has a
# namespace of its own, dstune::NAME_test.
set(DSTUNE_TEST_UNIT 30 CACHE STRING "How many test sources are compiled together; 1: each alone, sooner after an edit")

# dstune_compile_together(TARGET)
function(dstune_compile_together target)
  if(DSTUNE_TEST_UNIT GREATER 1)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${DSTUNE_TEST_UNIT})
  endif()
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
  dstune_compile_together(${name})
endfunction()
