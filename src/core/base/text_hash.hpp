// FNV-1a: the same number for the same bytes on every machine and in every run.
#pragma once

#include <cstdint>
#include <string_view>

namespace dstune {

constexpr std::uint64_t kHashStart = 0xCBF29CE484222325U;

constexpr std::uint64_t hash_of(std::string_view bytes, std::uint64_t start = kHashStart) {
  std::uint64_t hash = start;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3U;
  }
  return hash;
}

}  // namespace dstune
