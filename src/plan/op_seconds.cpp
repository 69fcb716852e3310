#include "plan/op_seconds.h"

namespace penstock::plan {

OpSeconds::Table& OpSeconds::own() {
  if (!table_) {
    table_ = std::make_shared<Table>();
  } else if (table_.use_count() > 1) {
    table_ = std::make_shared<Table>(*table_);
  }
  return *table_;
}

void OpSeconds::push_back(std::span<const double> variants) {
  Table& table = own();
  if (variants.size() != 1 && table.first.empty()) {
    for (std::size_t i = 0; i <= table.seconds.size(); ++i)
      table.first.push_back(static_cast<std::uint32_t>(i));
  }
  table.seconds.insert(table.seconds.end(), variants.begin(), variants.end());
  if (!table.first.empty()) table.first.push_back(static_cast<std::uint32_t>(table.seconds.size()));
}

void OpSeconds::set(std::size_t op, std::size_t variant, double seconds) {
  Table& table = own();
  table.seconds[(table.first.empty() ? op : table.first[op]) + variant] = seconds;
}

LongVector<LongVector<double>> OpSeconds::rows() const {
  LongVector<LongVector<double>> all;
  for (std::size_t op = 0; op < size(); ++op) all.emplace_back((*this)[op].begin(), (*this)[op].end());
  return all;
}

}  // namespace penstock::plan
