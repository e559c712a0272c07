// Objects that count who holds them, for boost::intrusive_ptr. The count needs no lock: a rank's
// step is one thread.
#pragma once

#include <cstddef>

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include "core/train/tape/pooled.hpp"

namespace dstune {

class Counted : public Pooled {
 public:
  Counted() = default;
  virtual ~Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  std::size_t use_count() const noexcept { return holders_; }

 private:
  friend void intrusive_ptr_add_ref(Counted* object) noexcept { ++object->holders_; }
  friend void intrusive_ptr_release(Counted* object) noexcept {
    if (--object->holders_ == 0) destroy(object);
  }
  static void destroy(Counted* object) noexcept;

  std::size_t holders_ = 0;
};

}  // namespace dstune
