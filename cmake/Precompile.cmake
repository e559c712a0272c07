# What nearly every source parses, parsed once per build: the standard library's containers and
# Boost.JSON (src/precompiled.hpp), and for tests GoogleTest besides (tests/precompiled.hpp).
#
# A source may not lean on it: headers are checked, and linted, without.
# ccache sees which precompiled header a source used only with -fpch-preprocess.
target_compile_options(dstune_settings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)

function(dstune_add_precompiled name header)
  file(WRITE ${PROJECT_BINARY_DIR}/${name}.cpp.new "// precompiles a header\n")
  file(COPY_FILE ${PROJECT_BINARY_DIR}/${name}.cpp.new ${PROJECT_BINARY_DIR}/${name}.cpp ONLY_IF_DIFFERENT)
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} PRIVATE ${header})
endfunction()

# A Debug build (the sanitizers') optimises only the rooms that a step spends its time in: compiling the
# others costs more than running them.
add_library(dstune_step_settings INTERFACE)
target_compile_options(dstune_step_settings INTERFACE $<$<AND:$<CONFIG:Debug>,$<COMPILE_LANGUAGE:CXX>>:-O1>)

dstune_add_precompiled(dstune_precompiled ${PROJECT_SOURCE_DIR}/src/precompiled.hpp
  dstune_settings Boost::json)
set(dstune_steps_header dstune_precompiled) # the settings differ in a Debug build alone
if(CMAKE_BUILD_TYPE STREQUAL Debug)
  set(dstune_steps_header dstune_precompiled_for_steps)
  dstune_add_precompiled(dstune_precompiled_for_steps ${PROJECT_SOURCE_DIR}/src/precompiled.hpp
    dstune_settings Boost::json dstune_step_settings)
endif()

# dstune_precompile(TARGET...): they share dstune_precompiled, so their flags must be its flags.
function(dstune_precompile)
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM dstune_precompiled)
  endforeach()
endfunction()

# dstune_precompile_for_steps(TARGET...): with dstune_step_settings.
function(dstune_precompile_for_steps)
  foreach(target IN LISTS ARGN)
    target_link_libraries(${target} PRIVATE dstune_step_settings)
    target_precompile_headers(${target} REUSE_FROM ${dstune_steps_header})
  endforeach()
endfunction()
