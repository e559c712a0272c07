# NVIDIA's libraries come with a system, with the CUDA toolkit, or as Python packages, whose folders
# are site-packages/nvidia/NAME with include/ and lib/libNAME.so.N, without a plain .so.
include_guard(GLOBAL)

# dstune_python_packages(OUT): the folders of packages of $VIRTUAL_ENV, of $CONDA_PREFIX and of the
# python3 on PATH.
function(dstune_python_packages out)
  set(packages)
  foreach(prefix IN ITEMS "$ENV{VIRTUAL_ENV}" "$ENV{CONDA_PREFIX}")
    if(prefix)
      file(GLOB folders ${prefix}/lib/python3*/site-packages)
      list(APPEND packages ${folders})
    endif()
  endforeach()
  find_program(DSTUNE_PYTHON3 python3)
  mark_as_advanced(DSTUNE_PYTHON3)
  if(DSTUNE_PYTHON3)
    execute_process(COMMAND ${DSTUNE_PYTHON3} -c "import sys; print(';'.join(sys.path[1:]))"
      OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    list(APPEND packages ${path})
  endif()
  list(REMOVE_DUPLICATES packages)
  set(${out} ${packages} PARENT_SCOPE)
endfunction()

# dstune_nvidia_folders(OUT NAME...): the folders of NVIDIA's packages that exist.
function(dstune_nvidia_folders out)
  dstune_python_packages(packages)
  set(found)
  foreach(folder IN LISTS packages)
    foreach(name IN LISTS ARGN)
      if(IS_DIRECTORY ${folder}/nvidia/${name})
        list(APPEND found ${folder}/nvidia/${name})
      endif()
    endforeach()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# dstune_find_nvidia(PREFIX HEADER h LIBRARY name PACKAGES name...): sets the cache variables
# PREFIX_INCLUDE_DIR and PREFIX_LIBRARY. Looks in PREFIX_ROOT first (variable or environment), then
# in the toolkit, the system and Python's packages.
macro(dstune_find_nvidia prefix)
  cmake_parse_arguments(dstune_find "" "HEADER;LIBRARY" "PACKAGES" ${ARGN})
  dstune_nvidia_folders(dstune_find_folders ${dstune_find_PACKAGES})
  find_path(${prefix}_INCLUDE_DIR ${dstune_find_HEADER}
    HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS ${dstune_find_folders} PATH_SUFFIXES include)
  # A library without its plain .so is found by its versioned name; which version, its header says.
  set(dstune_find_names ${dstune_find_LIBRARY})
  foreach(version RANGE 20 1 -1)
    list(APPEND dstune_find_names lib${dstune_find_LIBRARY}.so.${version})
  endforeach()
  find_library(${prefix}_LIBRARY NAMES ${dstune_find_names} NAMES_PER_DIR
    HINTS ${CUDAToolkit_LIBRARY_DIR} PATHS ${dstune_find_folders} PATH_SUFFIXES lib lib64)
  mark_as_advanced(${prefix}_INCLUDE_DIR ${prefix}_LIBRARY)
endmacro()

# dstune_read_version(OUT FILE MACRO...): the numbers that FILE #defines, joined by dots.
function(dstune_read_version out file)
  set(numbers)
  foreach(macro IN LISTS ARGN)
    file(STRINGS ${file} line REGEX "#define +${macro} +[0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+" number "${line}")
    list(APPEND numbers ${number})
  endforeach()
  list(JOIN numbers . version)
  set(${out} ${version} PARENT_SCOPE)
endfunction()
