// The launcher that started this process.
#pragma once

#include <string>

#include "core/base/units.hpp"

namespace dstune {

/// Content of /proc/`pid`/`name`; "" if there is none.
std::string read_proc(int pid, const char* name);

/// The process of Open MPI that started this one, perhaps through a script; 0 if there is none.
int find_launcher();

/// Why a launcher on this host could not write `size` more bytes to its standard output, to which
/// it hands on what its ranks print; "" if it can, or if that is not known. By itself it says
/// nothing of a disk that is full.
std::string why_launcher_cannot_print(Bytes size);

/// Where Open MPI keeps what it needs while it runs, and what an mpirun that is killed leaves
/// behind:
/// ".../ompi.HOST.USER/pid.<process id of mpirun>"; "" under another launcher.
std::string launcher_folder();

}  // namespace dstune
