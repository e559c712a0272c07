// Thrust's iterator over numbers, as far as it is used.
#pragma once
#pragma GCC system_header

#include <cstdint>

namespace thrust {

template <class T>
struct counting_iterator {
  T first;

  T operator[](std::int64_t i) const { return first + i; }
};

template <class T>
counting_iterator<T> make_counting_iterator(T first) {
  return {first};
}

}  // namespace thrust
