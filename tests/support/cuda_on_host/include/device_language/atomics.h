// Atomic functions, on the host. Relaxed as on a device, so that they order nothing else.
#pragma once
#pragma GCC system_header

#include <concepts>
#include <cstring>
#include <type_traits>

namespace cuda_on_host {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;

/// Replaces *address by change(*address); what was there.
template <class T, class Change>
T atomic_change(T* address, Change change) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  auto* const bits = reinterpret_cast<Bits<T>*>(address);
  Bits<T> old = __atomic_load_n(bits, __ATOMIC_RELAXED);
  for (;;) {
    T value;
    std::memcpy(&value, &old, sizeof value);
    const T next = change(value);
    Bits<T> next_bits;
    std::memcpy(&next_bits, &next, sizeof next);
    if (__atomic_compare_exchange_n(bits, &old, next_bits, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return value;
  }
}

template <class T, class... Types>
concept OneOf = (std::same_as<T, Types> || ...);

template <class T>
concept AtomicInteger = OneOf<T, int, unsigned, unsigned long long>;

}  // namespace cuda_on_host

template <class T>
  requires cuda_on_host::AtomicInteger<T> || cuda_on_host::OneOf<T, float, double>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(address, [value](T old) { return static_cast<T>(old + value); });
}

template <class T>
  requires cuda_on_host::AtomicInteger<T> || cuda_on_host::OneOf<T, long long>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(address, [value](T old) { return old < value ? value : old; });
}

template <class T>
  requires cuda_on_host::AtomicInteger<T> || cuda_on_host::OneOf<T, long long>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(address, [value](T old) { return value < old ? value : old; });
}

template <cuda_on_host::AtomicInteger T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(address, [value](T old) { return static_cast<T>(old | value); });
}

template <cuda_on_host::AtomicInteger T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(address, [value](T old) { return static_cast<T>(old & value); });
}

template <class T>
  requires cuda_on_host::AtomicInteger<T> || cuda_on_host::OneOf<T, float>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(address, [value](T) { return value; });
}

template <cuda_on_host::AtomicInteger T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(address, [=](T old) { return old == compare ? value : old; });
}

template <cuda_on_host::AtomicInteger T>
T atomicInc(T* address, std::type_identity_t<T> limit) {
  return cuda_on_host::atomic_change(address, [limit](T old) { return old >= limit ? T{0} : old + 1; });
}
