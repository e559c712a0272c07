#include "kernels/host/nvme/swap_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/text.hpp"
#include "kernels/host/nvme/aio_engine.hpp"
#include "kernels/host/nvme/aligned_buffer.hpp"
#include "kernels/host/nvme/drive.hpp"
#include "kernels/host/nvme/scratch_file.hpp"

namespace dstune::host {
namespace {

// Others write to the drive, too, and one that is full is slow: some of it stays free.
constexpr Bytes kLeftOfFree = 10;  // its part

constexpr std::chrono::milliseconds kBetweenTicks{1};

// Where the system does not say, logical blocks have 512 bytes.
constexpr Bytes kUsualBlock = 512;

[[noreturn]] void fail(const FileError& error) { throw DriveError(to_text(error)); }

template <class T>
T or_fail(OrFileError<T> made) {
  if (const auto* const error = std::get_if<FileError>(&made)) fail(*error);
  return std::move(std::get<T>(made));
}

// What direct I/O takes, as statx(2) says from Linux 6.1 on; 0: it does not say. Its structure is
// newer than the headers of many systems.
Bytes asked_of_system(int file, std::size_t word) {
  constexpr std::uint32_t kAlignmentOfDirectIo = 0x2000;  // STATX_DIOALIGN
  constexpr std::size_t kMask = 0;                        // stx_mask
  std::array<std::uint32_t, 64> answer{};
  const long result =
      ::syscall(SYS_statx, file, "", AT_EMPTY_PATH, kAlignmentOfDirectIo, answer.data());
  return result == 0 && (answer[kMask] & kAlignmentOfDirectIo) != 0 ? answer.at(word) : 0;
}

// Of addresses: multiples of a logical block where the system does not say.
Bytes memory_alignment(int file, Bytes block) {
  constexpr std::size_t kOfMemory = 38;  // stx_dio_mem_align
  const Bytes said = asked_of_system(file, kOfMemory);
  return said > 0 ? said : block;
}

// Of places in the file, and of sizes.
Bytes offset_alignment(int file) {
  constexpr std::size_t kOfOffset = 39;  // stx_dio_offset_align
  return asked_of_system(file, kOfOffset);
}

// DeepSpeed makes all folders of its path; nothing is made here that a file without a name needs
// not.
std::string nearest_directory(const std::string& directory) {
  std::error_code ignored;
  std::filesystem::path path = std::filesystem::absolute(directory, ignored);
  while (path.has_relative_path() && !std::filesystem::exists(path, ignored)) {
    path = path.parent_path();
  }
  return path.string();
}

/// A transfer of memory that a drive cannot take: DeepSpeed's gradients begin there at any element,
/// and what it reads of parameters ends there too.
struct Detour {
  AlignedBuffer buffer;
  Tensor tensor;
};

class SwapQueue final : public DriveQueue {
 public:
  SwapQueue(const AioSettings& settings, const ScratchFile& file, Bytes block,
            const std::function<void()>& tick)
      : engine_(or_fail(AioEngine::make(settings))),
        file_(file),
        block_(block),
        memory_alignment_(memory_alignment(file.descriptor(), block)),
        tick_(tick) {}

  void start(const DriveTransfer& transfer) override {
    const Bytes size = transfer.tensor.size();
    const bool is_read = transfer.direction == Transfer::nvme_read;
    const Bytes moved = (size + block_ - 1) / block_ * block_;
    if (moved != size && !is_read) {
      throw DriveError(concat("a tensor of ", size, " bytes on a drive with logical blocks of ",
                              block_,
                              ": DeepSpeed cuts tensors at multiples of 1 KiB for each "
                              "thread, and does not see that such a drive refuses them"));
    }
    auto* memory = static_cast<std::byte*>(transfer.tensor.data);
    if (moved != size || reinterpret_cast<std::uintptr_t>(memory) % memory_alignment_ != 0) {
      detours_.push_back({or_fail(AlignedBuffer::make(moved, AlignedBuffer::Lock::never)),
                          is_read ? transfer.tensor : Tensor{}});
      if (!is_read) std::memcpy(detours_.back().buffer.data(), memory, size);
      memory = detours_.back().buffer.data();
    }
    engine_->start({.direction = is_read ? AioDirection::read : AioDirection::write,
                    .file = file_.descriptor(),
                    .path = file_.directory(),
                    .buffer = memory,
                    .size = moved,
                    .offset = transfer.offset});
  }

  void wait() override {
    while (!engine_->ends_within(kBetweenTicks)) tick_();
    if (const auto error = engine_->wait()) fail(*error);
    for (const Detour& detour : detours_) {
      if (detour.tensor.data == nullptr) continue;
      std::memcpy(detour.tensor.data, detour.buffer.data(), detour.tensor.size());
    }
    detours_.clear();
  }

 private:
  std::vector<Detour> detours_;  // it must outlive the engine, which may still use it
  std::unique_ptr<AioEngine> engine_;
  const ScratchFile& file_;
  Bytes block_;
  Bytes memory_alignment_;
  const std::function<void()>& tick_;
};

class SwapFile final : public DriveFile {
 public:
  SwapFile(const std::string& directory, std::function<void()> tick)
      : file_(or_fail(ScratchFile::make(directory))), tick_(std::move(tick)) {
    const DriveFacts facts = or_fail(look_at_drive(directory));
    if (facts.is_in_memory()) {
      throw DriveError(concat(directory, " is on ", facts.file_system,
                              ", which is in memory: nothing is offloaded there"));
    }
    if (facts.logical_block > 0) block_ = facts.logical_block;
    block_ = std::max(block_, offset_alignment(file_.descriptor()));
    left_free_ = facts.free / kLeftOfFree;
  }

  void grow_to(Bytes size) override {
    if (size <= size_) return;
    const DriveFacts facts = or_fail(look_at_drive(file_.directory()));
    // What is only promised is still free.
    const Bytes more = is_sparse_ ? size : size - size_;
    if (facts.free < left_free_ || facts.free - left_free_ < more) {
      throw DriveError(concat(format_bytes(facts.free), " are free in ", file_.directory(),
                              ", and ", format_bytes(left_free_), " of them are left to others"));
    }
    reserve(size);
    size_ = size;
  }

  std::unique_ptr<DriveQueue> make_queue(const AioSettings& settings) override {
    return std::make_unique<SwapQueue>(settings, file_, block_, tick_);
  }

 private:
  // A full drive or a quota shows here, and not in a step. Some file systems cannot promise room.
  void reserve(Bytes size) {
    const auto length = static_cast<off_t>(size);
    int code = ::fallocate(file_.descriptor(), 0, 0, length) == 0 ? 0 : errno;
    if (code == EOPNOTSUPP) {
      is_sparse_ = true;
      code = ::ftruncate(file_.descriptor(), length) == 0 ? 0 : errno;
    }
    if (code == 0) return;
    fail({.operation = concat("reservation of ", format_bytes(size)),
          .file = file_.directory(),
          .code = code,
          .remark = {}});
  }

  ScratchFile file_;
  std::function<void()> tick_;
  Bytes block_ = kUsualBlock;
  Bytes left_free_ = 0;
  Bytes size_ = 0;
  bool is_sparse_ = false;
};

}  // namespace

std::unique_ptr<DriveFile> make_swap_file(const std::string& directory,
                                          std::function<void()> tick) {
  return std::make_unique<SwapFile>(nearest_directory(directory), std::move(tick));
}

void* allocate_locked(MemoryCategory category, Bytes size, Bytes in_use, Bytes limit) {
  auto made = AlignedBuffer::make(std::max(size, Bytes{1}), AlignedBuffer::Lock::required);
  if (const auto* const error = std::get_if<FileError>(&made)) {
    throw OutOfMemoryError(category, size, in_use, limit, 0, to_text(*error), Tier::locked);
  }
  return std::move(std::get<AlignedBuffer>(made)).keep();
}

void free_locked(void* data, Bytes size) noexcept {
  AlignedBuffer::release(static_cast<std::byte*>(data), std::max(size, Bytes{1}));
}

}  // namespace dstune::host
