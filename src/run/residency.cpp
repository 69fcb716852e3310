#include "run/residency.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"

namespace penstock::run {

Residency::Residency(Pool& pool, const fit::StorageMap& map, Tier* tier)
    : pool_(pool), map_(map), tier_(tier), states_(static_cast<std::size_t>(map.storages)) {}

int Residency::extent(ir::StorageId s) const {
  require(tier_ != nullptr && has_extent(s), "executor: the storage has no place on a tier");
  return map_.extent[static_cast<std::size_t>(s)];
}

void Residency::note_peak() {
  stats_->peak_pool_bytes = std::max(stats_->peak_pool_bytes, pool_.mapped_bytes());
}

std::int64_t Residency::next_offset(int slot) {
  if (offsets_.empty()) return home(slot);
  const std::int64_t offset = offsets_.front();
  offsets_ = offsets_.subspan(1);
  return offset;
}

void Residency::acquire(ir::StorageId s) {
  at(s).offset = next_offset(s);
  pool_.acquire(s, at(s).offset);
  note_peak();
}

void Residency::release(ir::StorageId s) {
  require(at(s).pending == plan::Transfer::none, "executor: release of a storage that is being moved");
  pool_.release(s);
}

void Residency::adopt(ir::StorageId s, ir::StorageId from) {
  require(at(from).pending == plan::Transfer::none,
          "executor: a storage that is being moved is written over");
  pool_.hand_over(from, s);
  at(s).offset = at(from).offset;
  adopted_.push_back({from, s});
}

const void* Residency::input_address(ir::StorageId s) const {
  const auto pair = std::find_if(adopted_.begin(), adopted_.end(),
                                 [&](const plan::Overwrite& adopted) { return adopted.from == s; });
  return pool_.address(pair == adopted_.end() ? s : pair->to);
}

void Residency::swap_out(ir::StorageId s) {
  State& state = at(s);
  require(state.pending == plan::Transfer::none, "executor: swap_out of a storage that is being moved");
  const double since = clock_seconds();
  const Ticket ticket = tier_ == nullptr ? 0 : tier_->write(extent(s), pool_.address(s));
  require(ticket != 0, "executor: swap_out without a tier");
  moving_[s] = {ticket, since};
  state.pending = plan::Transfer::write;
  state.on_tier = true;
  state.written = state.in_memory;
  if (trace_ != nullptr && trace_->looks_at_transfers) looked_at_.push_back(s);
  stats_->swapped_out_bytes += map_.slot_bytes[static_cast<std::size_t>(s)];
}

void Residency::swap_in(ir::StorageId s) {
  State& state = at(s);
  const int from = extent(s);
  require(state.on_tier, "executor: swap_in of a storage that the tier does not have");
  state.offset = next_offset(s);
  void* data = pool_.acquire(s, state.offset);
  note_peak();
  const double since = clock_seconds();
  moving_[s] = {tier_->read(from, data), since};
  state.pending = plan::Transfer::read;
  state.in_memory = state.written;
  if (trace_ != nullptr && trace_->looks_at_transfers) looked_at_.push_back(s);
  stats_->swapped_in_bytes += map_.slot_bytes[static_cast<std::size_t>(s)];
}

void Residency::wait(ir::StorageId s) {
  State& state = at(s);
  if (state.pending == plan::Transfer::none) return;
  Moving& moving = moving_.at(s);
  const double start = clock_seconds();
  tier_->wait(moving.ticket);
  const double end = clock_seconds();
  stats_->stall_seconds += end - start;
  if (trace_ != nullptr && !trace_->only_ops) {
    const double origin = trace_->origin_seconds;
    if (!moving.traced) trace_transfer(s, moving, end);
    trace_->events.push_back({plan::Action::wait, s, false, start - origin, end - origin});
  }
  state.pending = plan::Transfer::none;
  moving_.erase(s);
}

void* Residency::acquire_scratch(std::int64_t size_bytes) {
  if (size_bytes == 0) return nullptr;
  const int slot = map_.scratch_slot.at(size_bytes);
  void* data = pool_.acquire(slot, next_offset(slot));
  note_peak();
  return data;
}

void Residency::release_scratch(std::int64_t size_bytes) {
  if (size_bytes != 0) pool_.release(map_.scratch_slot.at(size_bytes));
}

void Residency::trace_transfer(ir::StorageId s, Moving& moving, double end_seconds) {
  moving.traced = true;
  const auto action = pending(s) == plan::Transfer::read ? plan::Action::swap_in : plan::Action::swap_out;
  const double origin = trace_->origin_seconds;
  trace_->events.push_back({action, s, false, moving.since_seconds - origin, end_seconds - origin});
}

void Residency::look_for_complete() {
  if (looked_at_.empty()) return;
  const double now = clock_seconds();
  std::erase_if(looked_at_, [&](ir::StorageId s) {
    const auto found = moving_.find(s);
    if (found == moving_.end() || found->second.traced) return true;
    if (!tier_->done(found->second.ticket)) return false;
    trace_transfer(s, found->second, now);
    return true;
  });
}

void Residency::count_into(StepStats* stats, Trace* trace) {
  stats_ = stats != nullptr ? stats : &idle_stats_;
  trace_ = trace;
  note_peak();
}

}  // namespace penstock::run
