// apply_rotary_pos_emb is a chain of kernels in eager PyTorch, each of which reads and writes
// memory: five forward and nine backward, one more where only a part of each head turns. So they
// are here, with the operation's scratch as the memory between them.
#include <cassert>

#include "core/device/operations/attention.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

// Launches, at most.
constexpr int kForward = 6;
constexpr int kBackward = 10;

/// Numbers of 32 bits, which cost less: no matrix has 2^31 rows.
struct Place {
  std::uint32_t row;
  std::uint32_t head;
  std::uint32_t column;
};

/// Heads of all rows, some columns of each.
struct Heads {
  Divisor heads;
  Divisor columns;

  Heads(std::int64_t heads_of_row, std::int64_t columns_of_head)
      : heads(heads_of_row), columns(columns_of_head) {}

  __device__ Place place_of(std::int64_t i) const {
    const std::int64_t vector = i / columns;
    const auto row = static_cast<std::uint32_t>(vector / heads);
    const auto in_row = static_cast<std::uint32_t>(vector);  // differences fit in 32 bits
    return {row, in_row - row * *heads, static_cast<std::uint32_t>(i) - in_row * *columns};
  }
};

/// Where heads lie: those of a row side by side.
template <class T>
struct Layout {
  T* data;
  std::uint32_t row_stride;
  std::uint32_t head_stride;

  __device__ T& at(const Place& place) const {
    return data[std::uint64_t{place.row} * row_stride + place.head * head_stride + place.column];
  }
  Layout from_column(std::int64_t first) const { return {data + first, row_stride, head_stride}; }
};

/// Cosines or sines (s, half), which stand for both halves of a head.
template <class T>
struct Angles {
  const T* data;
  Divisor rows;
  std::uint32_t stride;
  std::uint32_t half;

  __device__ T at(const Place& place) const {
    const std::uint32_t row = place.row - static_cast<std::uint32_t>(place.row / rows) * *rows;
    const std::uint32_t column = place.column < half ? place.column : place.column - half;
    return data[std::uint64_t{row} * stride + column];
  }
};

template <class T>
struct TimesAngles {
  Heads heads;
  Layout<const T> in;
  Angles<T> angles;
  __device__ void operator()(std::int64_t i, float& out) const {
    const Place place = heads.place_of(i);
    out = to_float(in.at(place)) * to_float(angles.at(place));
  }
};

/// The columns of `a` before `split`, then those of `b`.
template <class T>
struct SideBySide {
  Heads heads;
  Layout<const T> a;
  Layout<const T> b;
  std::uint32_t split;
  __device__ void operator()(std::int64_t i, float& out) const {
    Place place = heads.place_of(i);
    const bool is_a = place.column < split;
    if (!is_a) place.column -= split;
    out = to_float(is_a ? a.at(place) : b.at(place));
  }
};

struct Sum {
  __device__ void operator()(std::int64_t, float a, float b, float& out) const { out = a + b; }
};

/// out = sign in
template <class T>
struct MoveColumns {
  Heads heads;
  Layout<const T> in;
  float sign;
  Layout<T> out;
  __device__ void operator()(std::int64_t i) const {
    const Place place = heads.place_of(i);
    out.at(place) = from_float<T>(sign * to_float(in.at(place)));
  }
};

std::uint32_t short_of(std::int64_t number) {
  assert(number >= 0 && number < std::int64_t{1} << 31U);
  return static_cast<std::uint32_t>(number);
}

/// The kernels of both directions. What turns are the first columns of each head, two halves; it is
/// dense wherever it is not `in`.
template <class T>
class Chain {
 public:
  Chain(cudaStream_t stream, const Rotate& op)
      : stream_(stream),
        vectors_(op.in.rows * op.heads),
        heads_(short_of(op.heads)),
        size_(short_of(op.head_size)),
        half_(short_of(op.cos.cols)),
        in_{elements<const T>(op.in), short_of(op.in.stride), short_of(op.in_stride)},
        cos_{elements<const T>(op.cos), Divisor(op.cos.rows), short_of(op.cos.stride), half_},
        sin_{elements<const T>(op.sin), Divisor(op.sin.rows), short_of(op.sin.stride), half_},
        first_(elements<T>(op.scratch)),
        second_(first_ + op.out.numel()),
        out_(elements<T>(op.out)) {}

  // in cos + cat(-b, a) sin
  void forward() const {
    make(2 * half_, TimesAngles<T>{turning(), in_, cos_}, out_);
    move(in_.from_column(half_), -1.0F, dense(first_, half_));
    make(2 * half_, SideBySide<T>{turning(), dense<const T>(first_, half_), in_, half_}, second_);
    make(2 * half_, TimesAngles<T>{turning(), dense<const T>(second_, 2 * half_), sin_}, first_);
    finish(first_, second_);
  }

  // d cos, and d sin through cat: its first half through the sign, each through a slice, whose
  // gradient is a tensor of zeros but for it.
  void backward() const {
    const Layout<T> product = dense(first_, 2 * half_);
    make(2 * half_, TimesAngles<T>{turning(), in_, cos_}, out_);
    make(2 * half_, TimesAngles<T>{turning(), in_, sin_}, first_);
    move(as_const(product), -1.0F, product);
    slice(product, 0, half_);
    add(out_, second_, out_);
    slice(product, half_, 0);
    finish(second_, first_);
  }

 private:
  Heads turning() const { return {heads_, 2 * half_}; }
  template <class U>
  Layout<U> dense(U* data, std::uint32_t columns) const {
    return {data, heads_ * columns, columns};
  }
  static Layout<const T> as_const(const Layout<T>& layout) {
    return {layout.data, layout.row_stride, layout.head_stride};
  }

  template <class F>
  void make(std::int64_t columns, const F& f, T* out) const {
    for_single_elements(stream_, vectors_ * columns, f, Out<T>{out});
  }
  void add(const T* a, const T* b, T* out) const {
    for_single_elements(stream_, vectors_ * 2 * half_, Sum{}, In<T>{a}, In<T>{b}, Out<T>{out});
  }
  /// Half of what turns.
  void move(const Layout<const T>& in, float sign, const Layout<T>& out) const {
    for_single_elements(stream_, vectors_ * half_,
                        MoveColumns<T>{Heads{heads_, half_}, in, sign, out});
  }
  /// The columns of `in` from `from` on, at `to` within zeros.
  void slice(const Layout<T>& in, std::int64_t from, std::int64_t to) const {
    const auto size = static_cast<std::size_t>(vectors_ * 2 * half_) * sizeof(T);
    DSTUNE_CUDA_CHECK(cudaMemsetAsync(second_, 0, size, stream_));
    move(as_const(in.from_column(from)), 1.0F, dense(second_, 2 * half_).from_column(to));
  }
  /// out + term, with the columns that do not turn.
  void finish(const T* term, T* sum) const {
    if (2 * half_ == size_) return add(out_, term, out_);
    add(out_, term, sum);
    make(
        size_,
        SideBySide<T>{
            {heads_, size_}, dense<const T>(sum, 2 * half_), in_.from_column(2 * half_), 2 * half_},
        out_);
  }

  cudaStream_t stream_;
  std::int64_t vectors_;
  std::uint32_t heads_;
  std::uint32_t size_;
  std::uint32_t half_;
  Layout<const T> in_;
  Angles<T> cos_;
  Angles<T> sin_;
  T* first_;
  T* second_;
  T* out_;
};

}  // namespace

void CudaDevice::compute(const Rotate& op) {
  assert(op.in.rows == op.out.rows && op.in.rows % op.cos.rows == 0);
  assert(op.out.cols == op.heads * op.head_size && op.out.stride == op.out.cols);
  assert(op.in_stride >= op.head_size && 2 * op.cos.cols <= op.head_size);
  assert(op.sin.rows == op.cos.rows && op.sin.cols == op.cos.cols);
  assert(op.in.dtype == op.out.dtype && op.cos.dtype == op.in.dtype);
  assert(op.sin.dtype == op.in.dtype && op.in.data != op.out.data);
  assert(op.scratch.dtype == op.in.dtype && op.scratch.numel >= rotate_scratch(op.out.numel()));
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    const Chain<T> chain(stream(op.inverse ? kBackward : kForward), op);
    if (op.inverse) {
      chain.backward();
    } else {
      chain.forward();
    }
  });
}

}  // namespace dstune::cuda
