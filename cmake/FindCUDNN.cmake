# Finds cuDNN: CUDNN_ROOT, the CUDA toolkit, the system, Python's nvidia-cudnn. Defines CUDNN_VERSION and
# CUDNN::headers; the library is opened at run time and not linked. Its header-only frontend is optional:
# CUDNN_FRONTEND_INCLUDE_DIR, from CUDNN_FRONTEND_ROOT, the system or Python's nvidia-cudnn-frontend.
include(${CMAKE_CURRENT_LIST_DIR}/NvidiaPackages.cmake)
dstune_find_nvidia(CUDNN HEADER cudnn.h LIBRARY cudnn PACKAGES cudnn)
if(CUDNN_INCLUDE_DIR)
  dstune_read_version(CUDNN_VERSION ${CUDNN_INCLUDE_DIR}/cudnn_version.h
    CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)
endif()

# Python's package has include/ among the packages themselves.
dstune_python_packages(cudnn_packages)
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
  HINTS ${CUDNN_FRONTEND_ROOT} $ENV{CUDNN_FRONTEND_ROOT} ${CUDNN_INCLUDE_DIR}
  PATHS ${cudnn_packages} PATH_SUFFIXES include)
mark_as_advanced(CUDNN_FRONTEND_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN
  REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION)

if(CUDNN_FOUND AND NOT TARGET CUDNN::headers)
  add_library(CUDNN::headers INTERFACE IMPORTED)
  target_include_directories(CUDNN::headers INTERFACE ${CUDNN_INCLUDE_DIR})
  if(CUDNN_FRONTEND_INCLUDE_DIR)
    target_include_directories(CUDNN::headers INTERFACE ${CUDNN_FRONTEND_INCLUDE_DIR})
  endif()
endif()
