// What the thread sanitizer is told: the edges that CUDA gives, and no other.
#pragma once

namespace cuda_on_host {

/// While one lives, this thread's locks, atomics and accesses order nothing and are not checked:
/// for the double's own bookkeeping, whose locks would order what CUDA does not.
class Unobserved {
 public:
  Unobserved();
  ~Unobserved();
  Unobserved(const Unobserved&) = delete;
  Unobserved& operator=(const Unobserved&) = delete;
};

/// All that this thread did so far happens before what a thread does after happens_after(token).
/// Neither may be called while an Unobserved lives.
void happens_before(const void* token);
void happens_after(const void* token);

}  // namespace cuda_on_host
