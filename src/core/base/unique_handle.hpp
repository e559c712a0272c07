// The sole owner of a C handle (MPI_Comm, a file descriptor, cudaStream_t, ...).
#pragma once

#include <utility>

namespace dstune {

/// `Traits` supplies three things:
///   using Handle = ...;
///   static Handle null() noexcept;          // the "owns nothing" value
///   static void close(Handle) noexcept;     // last call: its errors are ignored
template <class Traits>
class UniqueHandle {
 public:
  using Handle = typename Traits::Handle;

  UniqueHandle() noexcept : handle_(Traits::null()) {}
  explicit UniqueHandle(Handle handle) noexcept : handle_(handle) {}
  ~UniqueHandle() { reset(); }

  UniqueHandle(UniqueHandle&& other) noexcept : handle_(other.release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;

  Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != Traits::null(); }

  /// Gives up ownership without closing.
  [[nodiscard]] Handle release() noexcept { return std::exchange(handle_, Traits::null()); }

  /// Closes the current handle, if any, and owns `handle` instead.
  void reset(Handle handle = Traits::null()) noexcept {
    if (*this) Traits::close(handle_);
    handle_ = handle;
  }

 private:
  Handle handle_;
};

}  // namespace dstune
