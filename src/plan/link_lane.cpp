#include "plan/link_lane.h"

#include <algorithm>

namespace penstock::plan {

double LinkProfile::seconds(ir::ExchangeKind kind, std::int64_t size_bytes) const {
  if (ranks <= 1) return 0;
  const double passes = kind == ir::ExchangeKind::all_reduce ? 2 : 1;
  const double others = ranks - 1;
  const double sent_bytes = others / ranks * static_cast<double>(size_bytes);
  return passes * (sent_bytes / bandwidth + others * message_seconds) + latency_seconds;
}

double LinkLane::ready_seconds(ir::OpId id) const {
  if (profile_.ranks <= 1) return 0;
  const ir::Op& op = graph_.op(id);
  if (!ir::is_exchange_wait(op.kind)) return 0;
  const auto found = end_seconds_.find(op.attrs_as<ir::ExchangeAttrs>().bucket);
  return found == end_seconds_.end() ? 0 : found->second;
}

std::optional<LinkLane::Interval> LinkLane::start(ir::OpId id, double now_seconds) {
  if (profile_.ranks <= 1) return std::nullopt;
  const ir::Op& op = graph_.op(id);
  if (op.kind != ir::OpKind::reduce_start && op.kind != ir::OpKind::gather_start) return std::nullopt;
  const auto& attrs = op.attrs_as<ir::ExchangeAttrs>();
  Interval busy;
  busy.start_seconds = std::max(now_seconds, free_seconds_);
  busy.end_seconds =
      busy.start_seconds + profile_.seconds(attrs.kind, graph_.tensor(op.outputs[0]).size_bytes());
  free_seconds_ = busy.end_seconds;
  end_seconds_[attrs.bucket] = busy.end_seconds;
  return busy;
}

}  // namespace penstock::plan
