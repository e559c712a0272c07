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

function(expect_written_out expected)
  dstune_written_out(given ${ARGN})
  if(NOT given STREQUAL expected)
    message(SEND_ERROR "${ARGN}: ${given}; expected ${expected}")
  endif()
endfunction()

set(CMAKE_CUDA_ARCHITECTURES_ALL_MAJOR 50-real 60-real 90)
expect_written_out("70-real 80-real 90" 70-real 80-real 90)
expect_written_out("50-real 60-real 90" all-major)
expect_written_out("all" all) # where CMake does not say
expect_written_out("90a" 90a)
