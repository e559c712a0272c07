// The launcher that started this process.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/base/units.hpp"

namespace dstune {

/// The content of /proc/`pid`/`name`; "" if there is none.
std::string read_proc(int pid, const char* name);

/// The rank that the launcher has named in this process's environment; nothing under a launcher
/// that is not known here, and without one. Needs no MPI_Init.
std::optional<int> rank_of_launcher();

/// How many ranks the launcher of this process says that it has started in all; nothing where it
/// does not say. Needs no MPI_Init.
std::optional<int> ranks_of_launcher();

/// Whether process `pid`, a child of find_launcher(), is a rank.
bool is_rank(int pid);

/// How many ranks the launcher says that it has started on this host; 0 if it does not say.
std::size_t ranks_of_this_host();

/// The id of the process of Open MPI or MPICH (Hydra) that started this one, perhaps through a
/// script: mpirun itself, or its daemon; 0 if there is none.
int find_launcher();

/// The id of the mpirun or mpiexec that the user started; 0 if it is on another host, or if there
/// is none.
int find_mpirun();

/// Why the launcher, if it is on this host, could not write `size` more bytes to its standard
/// output, to which it passes on what its ranks print; "" if it can, or if that is not known. The
/// launcher itself does not report a disk that is full.
std::string why_launcher_cannot_print(Bytes size);

/// The folder in which Open MPI keeps its files while it runs, and which an mpirun that is killed
/// leaves behind: ".../ompi.HOST.USER/pid.<process id of mpirun>"; "" under another launcher.
std::string launcher_folder();

}  // namespace dstune
