// Thrust's iterator over what a function makes of elements, as far as it is used.
#pragma once
#pragma GCC system_header

#include <cstdint>

namespace thrust {

template <class F, class Iterator>
struct transform_iterator {
  Iterator from;
  F f;

  auto operator[](std::int64_t i) const { return f(from[i]); }
};

template <class F, class Iterator>
transform_iterator<F, Iterator> make_transform_iterator(Iterator from, F f) {
  return {from, f};
}

}  // namespace thrust
