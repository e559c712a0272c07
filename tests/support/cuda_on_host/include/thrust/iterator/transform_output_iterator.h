// Thrust's iterator that stores what a function makes of what is assigned, as far as it is used.
#pragma once
#pragma GCC system_header

#include <cstdint>

namespace thrust {

template <class F, class Iterator>
struct transform_output_iterator {
  struct Place {
    Iterator to;
    F f;

    template <class T>
    void operator=(const T& value) const {
      *to = f(value);
    }
  };

  Iterator to;
  F f;

  Place operator[](std::int64_t i) const { return {to + i, f}; }
};

template <class F, class Iterator>
transform_output_iterator<F, Iterator> make_transform_output_iterator(Iterator to, F f) {
  return {to, f};
}

}  // namespace thrust
