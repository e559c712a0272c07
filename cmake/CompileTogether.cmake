# Few compilations: the sources of a library, or the tests of a folder, are compiled several at a time, so
# that what they all include is parsed, and what they all instantiate is generated, once. What a source keeps
# to itself is therefore named so that it does not clash with its neighbours', and a test file has a namespace
# of its own, dstune::NAME_test.
option(DSTUNE_TOGETHER "Compile several sources at a time; OFF: each alone, sooner after an edit" ON)

# dstune_compile_together(COUNT TARGET...)
function(dstune_compile_together count)
  if(DSTUNE_TOGETHER)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endfunction()
