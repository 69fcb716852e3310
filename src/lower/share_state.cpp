#include <map>

#include "base/error.h"
#include "lower/lower.h"

namespace penstock::lower {

void share_state(Executable& other, const Executable& main) {
  std::map<std::string, const ir::Tensor*> states;
  for (const ir::Carried& state : main.graph.carried) {
    const ir::Tensor& tensor = main.graph.tensor(state.begin);
    states.emplace(tensor.name, &tensor);
  }
  std::map<ir::StorageId, ir::StorageId> places;
  for (const ir::Carried& state : other.graph.carried) {
    const ir::Tensor& tensor = other.graph.tensor(state.begin);
    const auto known = states.find(tensor.name);
    if (known == states.end()) continue;
    require(tensor.layout == known->second->layout,
            "share_state: the graphs hold a state in different layouts");
    places.emplace(tensor.storage, known->second->storage);
  }
  ir::StorageId next = main.graph.storages;
  for (ir::Tensor& tensor : other.graph.tensors) {
    const auto [place, is_new] = places.emplace(tensor.storage, next);
    if (is_new) ++next;
    tensor.storage = place->second;
  }
  other.graph.storages = next;
}

}  // namespace penstock::lower
