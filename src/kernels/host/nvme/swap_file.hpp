// A file on this machine's drive, for the tensors that a training step swaps.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/device/drive/drive_file.hpp"
#include "core/device/memory/memory_budget.hpp"

namespace dstune::host {

/// A file without a name in `directory`, or in the nearest one above it that exists; its queues are
/// AioEngines.
/// @param tick  is called now and then while somebody waits, and may throw
/// @throws DriveError  if there can be no such file
std::unique_ptr<DriveFile> make_swap_file(const std::string& directory, std::function<void()> tick);

/// Memory that begins at a page and is locked, for tensors that a drive reads or writes.
/// @param in_use, limit  of the host's memory, for the message
/// @throws OutOfMemoryError  of Tier::locked, with what the system says
void* allocate_locked(MemoryCategory category, Bytes size, Bytes in_use, Bytes limit);
/// @param data  of allocate_locked(), which had the same size
void free_locked(void* data, Bytes size) noexcept;

}  // namespace dstune::host
