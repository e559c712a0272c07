// Stages 1 and 2: who owns what of the flat buffers, and what a reduction needs besides them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/oracle/memory_given.hpp"

namespace dstune::oracle {

/// Where each tensor lies in its group's flat buffer.
struct Flats {
  std::vector<std::int64_t> begin;       // by tensor
  std::vector<std::int64_t> partition;   // by tensor: elements per rank of its group
  std::vector<std::int64_t> partitions;  // by group: of one rank
  std::int64_t all_partitions = 0;       // their sum

  std::int64_t largest_partition() const {
    return *std::max_element(partitions.begin(), partitions.end());
  }

  /// Elements of [begin, begin + numel) that `rank` owns.
  std::int64_t owned(std::size_t tensor, std::int64_t numel, std::int64_t rank) const {
    const std::int64_t first = std::max(begin[tensor], rank * partition[tensor]);
    const std::int64_t last = std::min(begin[tensor] + numel, (rank + 1) * partition[tensor]);
    return std::max<std::int64_t>(last - first, 0);
  }
};

Flats lay_out(const GivenRank& given);

/// The type of the bucket of stages 1 and 2.
DType bucket_type(const GivenRank& given);

/// R (memory_model.hpp): temporaries of the largest reduction of a bucket.
Bytes largest_reduction(const GivenRank& given, const Flats& flats);

}  // namespace dstune::oracle
