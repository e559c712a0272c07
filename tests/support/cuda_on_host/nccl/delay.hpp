// Collectives that begin late, as those do whose peers or network are slow.
#pragma once

namespace cuda_on_host {

/// Sleeps, on a stream's thread, as delay_collectives() said.
void delay_collective();

}  // namespace cuda_on_host
