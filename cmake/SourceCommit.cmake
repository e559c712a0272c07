# The commit of the sources, looked up at each build: a source changes only when it does.
if(CMAKE_SCRIPT_MODE_FILE) # cmake -DFOLDER=FOLDER -DSOURCE=FILE -P SourceCommit.cmake
  set(commit unknown)
  find_program(GIT git)
  if(GIT AND EXISTS "${FOLDER}/.git") # else a folder of another project's checkout
    execute_process(COMMAND "${GIT}" -C "${FOLDER}" rev-parse --short=12 HEAD
      OUTPUT_VARIABLE head RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT failed)
      set(commit "${head}")
      execute_process(COMMAND "${GIT}" -C "${FOLDER}" status --porcelain --untracked-files=no
        OUTPUT_VARIABLE changes ERROR_QUIET)
      if(changes)
        string(APPEND commit "-dirty")
      endif()
    endif()
  endif()
  file(WRITE "${SOURCE}.new" "#include \"commands.hpp\"\n\n"
    "std::string_view dstune::source_commit() { return \"${commit}\"; }\n")
  file(COPY_FILE "${SOURCE}.new" "${SOURCE}" ONLY_IF_DIFFERENT)
  return()
endif()

# dstune_add_source_commit(TARGET): it gets a source that defines source_commit() (commands.hpp).
function(dstune_add_source_commit target)
  set(source ${PROJECT_BINARY_DIR}/source_commit.cpp)
  add_custom_target(dstune_commit
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR} -DSOURCE=${source} -P ${CMAKE_CURRENT_FUNCTION_LIST_FILE}
    BYPRODUCTS ${source} COMMENT "Looking up the commit" VERBATIM)
  target_sources(${target} PRIVATE ${source})
  add_dependencies(${target} dstune_commit)
endfunction()
