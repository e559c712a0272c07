// CUB's stable radix sort of pairs, as far as it is used, by one thread.
#pragma once
#pragma GCC system_header

#include <algorithm>
#include <utility>
#include <vector>

#include "../on_host.cuh"

namespace cub {

template <class T>
struct DoubleBuffer {
  T* d_buffers[2] = {};
  int selector = 0;

  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() const { return d_buffers[selector]; }
  T* Alternate() const { return d_buffers[1 - selector]; }
};

namespace on_host {

/// Where the result is not may be anything.
template <class Key, class Value>
void sort_pairs_kernel(void* storage, Key* keys, Value* values, Key* sorted_keys,
                       Value* sorted_values, std::int64_t count, int first_bit, int end_bit) {
  spoil(storage);
  std::vector<std::pair<Key, Value>> pairs;
  for (std::int64_t i = 0; i < count; ++i)
    pairs.emplace_back(std::exchange(keys[i], 0), std::exchange(values[i], 0));
  const Key mask = ((Key{2} << (end_bit - 1 - first_bit)) - 1) << first_bit;
  std::stable_sort(pairs.begin(), pairs.end(), [mask](const auto& a, const auto& b) {
    return (a.first & mask) < (b.first & mask);
  });
  for (const auto& [key, value] : pairs) {
    *sorted_keys++ = key;
    *sorted_values++ = value;
  }
}

}  // namespace on_host

struct DeviceRadixSort {
  /// As on a GPU the result is behind the selectors, which here follow the number of bytes.
  template <class Key, class Value>
  static cudaError_t SortPairs(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys,
                               DoubleBuffer<Value>& values, std::int64_t count, int first_bit,
                               int end_bit, cudaStream_t stream) {
    const int passes = (end_bit - first_bit + 7) / 8;
    if (storage != nullptr && (count == 0 || passes == 0)) return cudaSuccess;
    Key* const from_keys = keys.Current();
    Value* const from_values = values.Current();
    if (storage != nullptr) keys.selector = values.selector = (keys.selector + passes) % 2;
    return on_host::run(storage, bytes, stream, on_host::sort_pairs_kernel<Key, Value>, from_keys,
                        from_values, keys.Current(), values.Current(), count, first_bit, end_bit);
  }
};

}  // namespace cub
