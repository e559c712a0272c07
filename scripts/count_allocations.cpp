// The bytes of torch's CPU tensors, counted where they are allocated: compare_memory_with_deepspeed.py
// compiles and loads this.
//
// What another thread than the one that called count_allocations() allocates is not counted, nor what
// this one does within a collective: gloo takes memory of its own, where NCCL works in place. What is
// freed is, by whatever thread: gloo's workers often drop the last reference to a message.
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include <c10/core/CPUAllocator.h>

namespace {

// oneDNN wants a block's address to be all that its deleter needs: the rest is found by it.
struct Block {
  c10::DataPtr memory;
  std::int64_t bytes = 0;
};

struct Account {
  std::mutex mutex;
  std::unordered_map<void*, Block> blocks;
  std::int64_t live = 0;
  std::int64_t most = 0;
  bool is_paused = false;
};

Account& account() {
  static auto* all = new Account;  // tensors outlive every static object
  return *all;
}

void release(void* address) {
  Block block;
  const std::lock_guard<std::mutex> lock(account().mutex);
  auto found = account().blocks.find(address);
  if (found == account().blocks.end()) return;
  block = std::move(found->second);
  account().blocks.erase(found);
  account().live -= block.bytes;
}

class Counting final : public c10::Allocator {
 public:
  explicit Counting(c10::Allocator& allocator) : allocator_(allocator) {}

  c10::DataPtr allocate(std::size_t size) override {
    c10::DataPtr memory = allocator_.allocate(size);
    void* const address = memory.get();
    if (address == nullptr) return memory;
    const c10::Device device = memory.device();
    const std::lock_guard<std::mutex> lock(account().mutex);
    const bool counts = !account().is_paused && std::this_thread::get_id() == thread_;
    Block& block = account().blocks[address];
    block = {std::move(memory), counts ? static_cast<std::int64_t>(size) : 0};
    account().live += block.bytes;
    if (account().live > account().most) account().most = account().live;
    return {address, address, release, device};
  }
  void follow_this_thread() { thread_ = std::this_thread::get_id(); }
  c10::DeleterFnPtr raw_deleter() const override { return release; }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    default_copy_data(to, from, size);
  }

 private:
  c10::Allocator& allocator_;
  std::thread::id thread_;
};

}  // namespace

/// From now on, what the calling thread allocates.
extern "C" void count_allocations() {
  static Counting counting(*c10::GetCPUAllocator());
  counting.follow_this_thread();
  c10::SetCPUAllocator(&counting, 1);
}

/// The largest sum of counted bytes that was live at a time, since this was last asked.
extern "C" std::int64_t take_peak() {
  const std::lock_guard<std::mutex> lock(account().mutex);
  return std::exchange(account().most, account().live);
}

/// What is allocated from now on is not counted, or is again.
extern "C" void pause_counting(int is_paused) {
  const std::lock_guard<std::mutex> lock(account().mutex);
  account().is_paused = is_paused != 0;
}
