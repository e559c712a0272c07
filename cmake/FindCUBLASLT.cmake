# Finds cuBLASLt: CUBLASLT_ROOT, the CUDA toolkit, the system, Python's nvidia-cublas. Defines
# CUBLASLT_VERSION and CUBLASLT::headers; the library is opened at run time and not linked.
include(${CMAKE_CURRENT_LIST_DIR}/NvidiaPackages.cmake)
dstune_find_nvidia(CUBLASLT HEADER cublasLt.h LIBRARY cublasLt PACKAGES cublas cu13 cu14)
if(CUBLASLT_INCLUDE_DIR)
  dstune_read_version(CUBLASLT_VERSION ${CUBLASLT_INCLUDE_DIR}/cublas_api.h
    CUBLAS_VER_MAJOR CUBLAS_VER_MINOR CUBLAS_VER_PATCH)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUBLASLT
  REQUIRED_VARS CUBLASLT_LIBRARY CUBLASLT_INCLUDE_DIR VERSION_VAR CUBLASLT_VERSION)

if(CUBLASLT_FOUND AND NOT TARGET CUBLASLT::headers)
  add_library(CUBLASLT::headers INTERFACE IMPORTED)
  target_include_directories(CUBLASLT::headers INTERFACE ${CUBLASLT_INCLUDE_DIR})
endif()
