#include "tests/support/cuda_on_host/nccl/reduce.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/support/cuda_on_host/fault.hpp"
#include "tests/support/cuda_on_host/include/cuda_bf16.h"
#include "tests/support/cuda_on_host/include/cuda_fp16.h"

namespace cuda_on_host {
namespace {

template <class T>
constexpr bool kHalf = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

/// What numbers of a type are added as.
template <class T>
using Wide = std::conditional_t<kHalf<T>, float, T>;

template <class T>
T combine(T left, T right, ncclRedOp_t op) {
  const auto a = static_cast<Wide<T>>(left);
  const auto b = static_cast<Wide<T>>(right);
  switch (op) {
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return static_cast<T>(std::max(a, b));
    case ncclMin:
      return static_cast<T>(std::min(a, b));
    default:
      return static_cast<T>(a + b);
  }
}

/// An average multiplies floats before it adds them, and divides integers after, as NCCL does.
template <class T>
constexpr bool kFloating = kHalf<T> || std::is_floating_point_v<T>;

template <class T>
T before(T value, const CollectiveCall& call, std::size_t ranks) {
  if constexpr (kFloating<T>) {
    const auto one = Wide<T>{1};
    if (call.op == ncclAvg)
      return static_cast<T>(static_cast<Wide<T>>(value) * (one / static_cast<Wide<T>>(ranks)));
  }
  return value;
}

template <class T>
T after(T value, const CollectiveCall& call, std::size_t ranks) {
  if constexpr (!kFloating<T>) {
    if (call.op == ncclAvg) return static_cast<T>(value / static_cast<T>(ranks));
  }
  return value;
}

/// Of elements [first, first + count) of what the ranks send.
template <class T>
std::vector<T> reduced(const std::vector<CollectiveCall>& calls, std::size_t first,
                       std::size_t count) {
  std::vector<T> result(count);
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const T* const values = static_cast<const T*>(calls[rank].send) + first;
    for (std::size_t i = 0; i < count; ++i) {
      const T value = before(values[i], calls[0], calls.size());
      result[i] = rank == 0 ? value : combine(result[i], value, calls[0].op);
    }
  }
  for (T& value : result) value = after(value, calls[0], calls.size());
  return result;
}

template <class T>
void write(const CollectiveCall& call, std::vector<T> values) {
  if (call.corrupts && !values.empty())
    values[0] = combine(values[0], static_cast<T>(Wide<T>{1}), ncclSum);
  if (!values.empty()) std::memcpy(call.receive, values.data(), values.size() * sizeof(T));
}

template <class T>
void reduce(const std::vector<CollectiveCall>& calls) {
  const std::size_t count = calls[0].count;
  if (calls[0].kind == Collective::reduce_scatter) {
    std::vector<std::vector<T>> parts;  // all, before any is written: it may be in place
    for (std::size_t rank = 0; rank < calls.size(); ++rank)
      parts.push_back(reduced<T>(calls, rank * count, count));
    for (std::size_t rank = 0; rank < calls.size(); ++rank) write(calls[rank], parts[rank]);
    return;
  }
  const auto result = reduced<T>(calls, 0, count);
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    if (calls[0].kind == Collective::all_reduce || static_cast<int>(rank) == calls[0].root)
      write(calls[rank], result);
  }
}

template <class Use>
void with_type(ncclDataType_t type, Use use) {
  switch (type) {
    case ncclInt8:
      return use(std::int8_t{});
    case ncclUint8:
      return use(std::uint8_t{});
    case ncclInt32:
      return use(std::int32_t{});
    case ncclUint32:
      return use(std::uint32_t{});
    case ncclInt64:
      return use(std::int64_t{});
    case ncclUint64:
      return use(std::uint64_t{});
    case ncclFloat16:
      return use(__half(0.0F));
    case ncclFloat32:
      return use(float{});
    case ncclFloat64:
      return use(double{});
    case ncclBfloat16:
      return use(__nv_bfloat16(0.0F));
  }
  misuse("NCCL with a type that is not supported");
}

void move(void* target, const void* source, std::size_t bytes) {
  if (bytes > 0 && target != source) std::memmove(target, source, bytes);
}

void gather(const std::vector<CollectiveCall>& calls) {
  const std::size_t bytes = calls[0].count * size_of(calls[0].type);
  for (const CollectiveCall& target : calls) {
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      move(static_cast<char*>(target.receive) + rank * bytes, calls[rank].send, bytes);
    }
  }
}

void broadcast(const std::vector<CollectiveCall>& calls) {
  const void* const source = calls[static_cast<std::size_t>(calls[0].root)].send;
  for (const CollectiveCall& target : calls)
    move(target.receive, source, target.count * size_of(target.type));
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  std::size_t size = 0;
  with_type(type, [&](auto element) { size = sizeof element; });
  return size;
}

void compute(const std::vector<CollectiveCall>& calls) {
  if (calls[0].kind == Collective::all_gather) return gather(calls);
  if (calls[0].kind == Collective::broadcast) return broadcast(calls);
  with_type(calls[0].type, [&](auto element) { reduce<decltype(element)>(calls); });
}

}  // namespace cuda_on_host
