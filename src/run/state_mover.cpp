#include "run/state_mover.h"

#include "base/error.h"
#include "base/long_vector.h"

namespace penstock::run {

StateMover::StateMover(Residency& residency, int storages)
    : residency_(residency), is_known_(static_cast<std::size_t>(storages), false) {}

void StateMover::evict(const LongVector<ir::StorageId>& storages) {
  for (const ir::StorageId s : storages) {
    if (residency_.pending(s) == plan::Transfer::read) residency_.wait(s);
    if (!residency_.on_tier(s)) residency_.swap_out(s);
  }
  for (const ir::StorageId s : storages) {
    residency_.wait(s);
    residency_.release(s);
  }
}

void StateMover::make_room_for(ir::StorageId s) {
  for (std::size_t i = 0; i < known_.size() && !residency_.fits(s); ++i) {
    if (residency_.resident(known_[i]) && residency_.has_extent(known_[i])) evict({known_[i]});
  }
}

void StateMover::bring_in(ir::StorageId s) {
  if (!residency_.resident(s)) {
    make_room_for(s);
    residency_.swap_in(s);
  }
  residency_.wait(s);
}

void StateMover::write(ir::StorageId s, const std::function<void(void*)>& fill) {
  if (is_known_[static_cast<std::size_t>(s)]) {
    bring_in(s);
  } else {
    make_room_for(s);
    residency_.acquire(s);
    known_.push_back(s);
    is_known_[static_cast<std::size_t>(s)] = true;
  }
  fill(residency_.address(s));
  residency_.changed(s);
}

void StateMover::read(ir::StorageId s, const std::function<void(const void*)>& use) {
  require(is_known_[static_cast<std::size_t>(s)], "executor: state is read before it is written");
  bring_in(s);
  use(residency_.address(s));
}

void StateMover::borrow(ir::StorageId s, const std::function<void(void*)>& use) {
  require(!is_known_[static_cast<std::size_t>(s)], "executor: state is borrowed");
  make_room_for(s);
  residency_.acquire(s);
  use(residency_.address(s));
  residency_.release(s);
}

void StateMover::settle(const plan::Boundary& boundary) {
  LongVector<const plan::Standing*> wanted(is_known_.size(), nullptr);
  for (const plan::Standing& place : boundary) {
    require(is_known_[static_cast<std::size_t>(place.storage)], "executor: state was never written");
    wanted[static_cast<std::size_t>(place.storage)] = &place;
  }
  LongVector<ir::StorageId> extra;
  for (const ir::StorageId s : known_) {
    const plan::Standing* place = wanted[static_cast<std::size_t>(s)];
    const bool stays = place != nullptr && place->resident && !residency_.is_elsewhere(s);
    if (residency_.resident(s) && !stays) extra.push_back(s);
  }
  evict(extra);
  for (const plan::Standing& place : boundary) {
    const ir::StorageId s = place.storage;
    if (place.resident && !residency_.resident(s)) residency_.swap_in(s);
  }
  for (const plan::Standing& place : boundary) {
    const ir::StorageId s = place.storage;
    if (residency_.pending(s) != plan::Transfer::none && residency_.pending(s) != place.pending) {
      residency_.wait(s);
    }
    if (place.on_tier && !residency_.on_tier(s)) residency_.swap_out(s);
  }
  for (const plan::Standing& place : boundary) {
    if (residency_.pending(place.storage) != place.pending) residency_.wait(place.storage);
  }
}

void StateMover::wait_for_all() {
  for (const ir::StorageId s : known_) residency_.wait(s);
}

}  // namespace penstock::run
