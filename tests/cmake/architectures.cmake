include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/CudaArchitectures.cmake)

function(expect version expected)
  dstune_cuda_architectures(${version} given)
  if(NOT given STREQUAL expected)
    message(SEND_ERROR "CUDA ${version}: ${given}; expected ${expected}")
  endif()
endfunction()

expect(12.0 "70-real;80-real;90")
expect(12.8 "70-real;80-real;90-real;100-real;120")
expect(12.9.1 "70-real;80-real;90-real;100-real;120")
expect(13.0 "75-real;80-real;90-real;100-real;120")
expect(13.0.88 "75-real;80-real;90-real;100-real;120")
