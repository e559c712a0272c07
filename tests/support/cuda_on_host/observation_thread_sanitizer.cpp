// Edges told to the thread sanitizer.
#include <sanitizer/tsan_interface.h>

#include "tests/support/cuda_on_host/observation.hpp"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}

namespace cuda_on_host {

Unobserved::Unobserved() {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

Unobserved::~Unobserved() {
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void happens_before(const void* token) { __tsan_release(const_cast<void*>(token)); }
void happens_after(const void* token) { __tsan_acquire(const_cast<void*>(token)); }

}  // namespace cuda_on_host
