// Barriers of a block and fences, on the host.
#pragma once
#pragma GCC system_header

namespace cuda_on_host {

/// Waits for all live threads of the block; how many of them passed true.
int block_barrier(bool predicate = false);

/// How many threads of the block have not ended.
int live_threads();

}  // namespace cuda_on_host

inline void __syncthreads() { cuda_on_host::block_barrier(); }
inline int __syncthreads_count(int predicate) { return cuda_on_host::block_barrier(predicate != 0); }
inline int __syncthreads_or(int predicate) { return cuda_on_host::block_barrier(predicate != 0) != 0 ? 1 : 0; }
inline int __syncthreads_and(int predicate) { return cuda_on_host::block_barrier(predicate == 0) == 0 ? 1 : 0; }

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
