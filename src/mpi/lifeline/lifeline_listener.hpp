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
  none,  ///< there never was a line, so that only heartbeats show whether the worker lives
  whole,
  closed,  ///< the worker's kernel closed it: the process ended
  broken,  ///< the worker's host does not answer, or the network cut the line; it may come back
};

class LifelineListener {
 public:
  /// Listens on all networks. If there is no network or no free port, the address has no hosts.
  explicit LifelineListener(int world_size);

  const LifelineAddress& address() const noexcept { return address_; }

  /// Accepts new lines and looks at the old ones. Connections of strangers are dropped, and the
  /// number of descriptors that they hold at any time is bounded. Never blocks or throws. `now`
  /// comes from steady_now().
  void look(Seconds now);

  LineState state(int rank) const { return lines_.at(static_cast<std::size_t>(rank)).state; }

 private:
  struct Line {
    FileHandle socket;
    LineState state = LineState::none;
  };
  struct Guest {  ///< a connection that has not yet said who it is, or that it read the answer
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
  std::size_t count_ = 0;    ///< the number of open lines
  std::size_t most_ = 0;
};

}  // namespace dstune
