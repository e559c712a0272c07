// Numbers from and to the host, through pinned memory.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/device/dtype.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

namespace {

template <class T>
void store(std::span<const float> values, void* out) {
  std::transform(values.begin(), values.end(), static_cast<T*>(out), from_float<T>);
}

template <class T>
void load(const void* in, std::span<float> values) {
  const auto* const elements = static_cast<const T*>(in);
  std::transform(elements, elements + values.size(), values.begin(),
                 [](T element) { return to_float(element); });
}

template <class T>
void load_numbers(const void* in, std::span<float> values) {
  const auto* const elements = static_cast<const T*>(in);
  std::transform(elements, elements + values.size(), values.begin(),
                 [](T element) { return static_cast<float>(element); });
}

void store(DType dtype, std::span<const float> values, void* out) {
  switch (dtype) {
    case DType::fp32:
      return store<float>(values, out);
    case DType::bf16:
      return store<BFloat16>(values, out);
    case DType::fp16:
      return store<Float16>(values, out);
    default:
      throw std::invalid_argument("write: of floating-point tensors only");
  }
}

void load(DType dtype, const void* in, std::span<float> values) {
  switch (dtype) {
    case DType::fp32:
      return load<float>(in, values);
    case DType::bf16:
      return load<BFloat16>(in, values);
    case DType::fp16:
      return load<Float16>(in, values);
    case DType::int8:
      return load_numbers<std::int8_t>(in, values);
    case DType::uint8:
      return load_numbers<std::uint8_t>(in, values);
    case DType::fp64:
      return load_numbers<double>(in, values);
    case DType::int64:
      throw std::invalid_argument("read: no arithmetic on int64 tensors");
  }
}

/// f(part, values of the part) for parts of `tensor` that fit into the staging memory.
template <class Values, class F>
void for_parts(Tensor tensor, Values values, F f) {
  const auto most = static_cast<std::int64_t>(Gpu::kStaging / size_of(tensor.dtype));
  for (std::int64_t begin = 0; begin < tensor.numel; begin += most) {
    const std::int64_t count = std::min(most, tensor.numel - begin);
    f(tensor.slice(begin, count),
      values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
  }
}

}  // namespace

void CudaDevice::write(std::span<const float> values, Tensor out) {
  for_parts(out, values, [this](Tensor part, std::span<const float> own) {
    store(part.dtype, own, gpu_.staging());
    copy_and_wait(part.data, gpu_.staging(), part.size(), cudaMemcpyHostToDevice);
  });
}

void CudaDevice::read(Tensor in, std::span<float> values) {
  for_parts(in, values, [this](Tensor part, std::span<float> own) {
    copy_and_wait(gpu_.staging(), part.data, part.size(), cudaMemcpyDeviceToHost);
    load(part.dtype, gpu_.staging(), own);
  });
}

void CudaDevice::copy_and_wait(void* to, const void* from, Bytes size, cudaMemcpyKind kind) {
  DSTUNE_CUDA_CHECK(cudaMemcpyAsync(to, from, size, kind, stream()));
  const auto end = gpu_.events().take_untimed();
  DSTUNE_CUDA_CHECK(cudaEventRecord(EventPool::of(end), stream()));
  gpu_.wait_for(EventPool::of(end), [this] { meanwhile(); });
}

}  // namespace dstune::cuda
