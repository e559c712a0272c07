# Finds NCCL: NCCL_ROOT, the CUDA toolkit, the system, Python's nvidia-nccl. Defines NCCL_VERSION and
# NCCL::headers; the library is opened at run time and not linked.
include(${CMAKE_CURRENT_LIST_DIR}/NvidiaPackages.cmake)
dstune_find_nvidia(NCCL HEADER nccl.h LIBRARY nccl PACKAGES nccl)
if(NCCL_INCLUDE_DIR)
  dstune_read_version(NCCL_VERSION ${NCCL_INCLUDE_DIR}/nccl.h NCCL_MAJOR NCCL_MINOR NCCL_PATCH)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL
  REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)

if(NCCL_FOUND AND NOT TARGET NCCL::headers)
  add_library(NCCL::headers INTERFACE IMPORTED)
  target_include_directories(NCCL::headers INTERFACE ${NCCL_INCLUDE_DIR})
endif()
