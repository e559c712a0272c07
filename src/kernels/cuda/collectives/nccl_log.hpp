// What NCCL says about itself in its log.
#pragma once

#include <string>
#include <string_view>

namespace dstune::cuda {

struct NcclFacts {
  std::string network;  ///< "IB", "Socket", "AWS Libfabric"; "" if the log does not say
  std::string version;  ///< "2.28.9+cuda13.0"; likewise

  bool operator==(const NcclFacts&) const = default;
};

/// @param log  with NCCL_DEBUG=INFO; the last word on a matter counts
NcclFacts nccl_facts(std::string_view log);

/// Moves, owns the file.
class NcclLog {
 public:
  /// A log of which nothing is known.
  NcclLog() = default;
  /// Reads `path`, which somebody else writes, and removes it at the end.
  explicit NcclLog(std::string path) : path_(std::move(path)) {}
  ~NcclLog();
  NcclLog(NcclLog&& other) noexcept;
  NcclLog& operator=(NcclLog&& other) noexcept;
  NcclLog(const NcclLog&) = delete;
  NcclLog& operator=(const NcclLog&) = delete;

  /// Lets NCCL write its log into a file that only this process reads, unless the user's
  /// environment already says what it logs. Before NCCL's first call, and before other threads
  /// start.
  static NcclLog begin();

  /// What NCCL has said up to now.
  NcclFacts facts() const;

 private:
  std::string path_;
};

}  // namespace dstune::cuda
