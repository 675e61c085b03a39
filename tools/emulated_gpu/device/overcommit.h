// Device memory that the card does not have, for a dry run, which must go on where the card would be full.
//
// WEIR_EMULATED_OVERCOMMIT=1: a request beyond the card fails once, so that the caller gives back what it only keeps for later,
// as it would on the card. The same request of the same thread in the same op is granted then. So what is held beyond the
// card is what nobody could give back, and the peak is the size of a card that would do. Any thread.
#ifndef WEIR_EMULATED_GPU_DEVICE_OVERCOMMIT_H_
#define WEIR_EMULATED_GPU_DEVICE_OVERCOMMIT_H_

#include <cstddef>
#include <cstdint>

namespace weir::emulated {

// The card has no room for `bytes`: whether they are granted all the same.
bool GrantBeyondCard(size_t bytes);

// How many requests were.
uint64_t GrantedBeyondCard();

}  // namespace weir::emulated

#endif
