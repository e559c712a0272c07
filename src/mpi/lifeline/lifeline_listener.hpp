// Rank 0's end of the lifelines of workers on other hosts.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <vector>

#include "core/base/files/file.hpp"
#include "core/base/units.hpp"
#include "mpi/lifeline/lifeline.hpp"

namespace dstune {

enum class LineState {
  none,  ///< never made, or not to be judged: heartbeats tell
  whole,
  closed,  ///< by the worker's kernel: its process ended
  broken,  ///< the worker's host does not answer, or something between cut it; it may come back
};

class LifelineListener {
 public:
  /// Listens on all networks. Without one, or with no port left, the address has no hosts.
  explicit LifelineListener(int world_size);

  const LifelineAddress& address() const noexcept { return address_; }

  /// Takes in new lines and looks at the old ones. Strangers are dropped; what they hold at any
  /// time is bounded. Never blocks or throws. `now` from steady_now().
  void look(Seconds now);

  LineState state(int rank) const { return lines_.at(static_cast<std::size_t>(rank)).state; }

 private:
  struct Line {
    FileHandle socket;
    LineState state = LineState::none;
  };
  struct Guest {  ///< that has not shown yet who it is, or that it heard the answer
    FileHandle socket;
    std::string heard;
    int rank = 0;  ///< 0: not known
    Seconds leave_time = 0;
  };

  bool listen();
  void let_in(Seconds now);
  bool is_done_with(Guest& guest);
  bool answer(Guest& guest) const;
  void admit(Guest& guest);
  void check(Line& line);

  LifelineAddress address_;
  FileHandle socket_;
  std::list<Guest> guests_;
  std::vector<Line> lines_;  ///< by rank
  std::size_t count_ = 0;    ///< of open lines
  std::size_t most_ = 0;
};

}  // namespace dstune
