# dstune_cuda_architectures(VERSION OUT): which GPUs to compile for with a toolkit of VERSION, oldest
# first. Each has its own code; the last one also has PTX, which the driver compiles for newer GPUs.
function(dstune_cuda_architectures version out)
  if(version VERSION_LESS 13.0)
    set(known 70) # V100; its code also runs on 75
  else()
    set(known 75)
  endif()
  list(APPEND known 80 90) # A100, H100; 86 and 89 run the code of 80
  if(version VERSION_GREATER_EQUAL 12.8)
    list(APPEND known 100 120)
  endif()
  list(POP_BACK known newest)
  list(TRANSFORM known APPEND "-real")
  set(${out} ${known} ${newest} PARENT_SCOPE)
endfunction()

# dstune_written_out(OUT ARCHITECTURE...): CMAKE_CUDA_ARCHITECTURES as one text, by spaces, in which CMake's
# words for several (all, all-major, native) are the GPUs that it takes them for.
function(dstune_written_out out)
  set(architectures ${ARGN})
  string(TOUPPER "${ARGN}" word)
  string(REPLACE - _ word "${word}")
  if(word MATCHES "^(ALL|ALL_MAJOR|NATIVE)$" AND DEFINED "CMAKE_CUDA_ARCHITECTURES_${word}")
    set(architectures ${CMAKE_CUDA_ARCHITECTURES_${word}})
  endif()
  list(JOIN architectures " " text)
  set(${out} ${text} PARENT_SCOPE)
endfunction()
