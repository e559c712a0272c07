# dstune_verify_headers(TARGET FOLDER): the headers under src/FOLDER are the target's interface, and
# the target all_verify_interface_header_sets compiles each of them alone.
function(dstune_verify_headers target folder)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.hpp)
  if(NOT DSTUNE_CUDA)
    list(FILTER headers EXCLUDE REGEX "/cuda/")
  endif()
  if(NOT headers)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL INTERFACE_LIBRARY)
    set(scope INTERFACE)
  endif()
  target_sources(${target} ${scope}
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${headers})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()
