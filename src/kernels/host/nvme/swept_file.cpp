#include "kernels/host/nvme/swept_file.hpp"

#include <cstddef>
#include <span>

#include "core/base/text.hpp"
#include "kernels/host/nvme/stamped_bytes.hpp"

namespace dstune::host {
namespace {

std::span<std::byte> bytes_of(const AlignedBuffer& buffer) {
  return {buffer.data(), static_cast<std::size_t>(buffer.size())};
}

}  // namespace

std::optional<FileError> SweptFile::make_buffers(Bytes operation, int pieces) {
  for (auto* const buffer : {&written_bytes_, &read_bytes_}) {
    buffer->reset();  // before the next one takes memory
    auto made = AlignedBuffer::make(operation, AlignedBuffer::Lock::if_allowed);
    if (auto* const error = std::get_if<FileError>(&made)) return std::move(*error);
    buffer->emplace(std::move(std::get<AlignedBuffer>(made)));
    fill_random(bytes_of(**buffer), seed_);
  }
  generations_.assign(static_cast<std::size_t>(pieces), 0);
  next_ = 0;
  return std::nullopt;
}

std::string SweptFile::why_not_locked() const {
  for (const auto* const buffer : {&written_bytes_, &read_bytes_}) {
    if (*buffer && !(*buffer)->is_locked()) return (*buffer)->why_not_locked();
  }
  return "";
}

void SweptFile::prepare(AioDirection direction) {
  if (direction == AioDirection::write) {
    stamp(bytes_of(*written_bytes_), offset(), ++generation_);
  }
}

std::optional<FileError> SweptFile::run(AioDirection direction, AioEngine& engine) {
  const bool is_read = direction == AioDirection::read;
  (is_read ? read_ : written_) += operation();
  engine.start({.direction = direction,
                .file = file_.descriptor(),
                .path = file_.directory(),
                .buffer = (is_read ? read_bytes_ : written_bytes_)->data(),
                .size = operation(),
                .offset = offset()});
  return engine.wait();
}

std::optional<FileError> SweptFile::finish(AioDirection direction) {
  std::optional<FileError> error;
  if (direction == AioDirection::write) {
    generations_[next_] = generation_;
  } else if (const auto at = find_difference(bytes_of(*read_bytes_), bytes_of(*written_bytes_),
                                             offset(), generations_[next_])) {
    error = FileError{.operation = concat("the bytes that were read at offset ", offset() + *at),
                      .file = file_.directory(),
                      .offset = offset() + *at,
                      .remark = "they are not those that were written"};
  }
  next_ = (next_ + 1) % generations_.size();
  return error;
}

}  // namespace dstune::host
