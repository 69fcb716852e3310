#include "penstock/network.h"

#include <fmt/format.h>

#include "base/error.h"
#include "models/builder_impl.h"
#include "models/network_graph.h"

namespace penstock {

struct Network::Impl {
  ir::Graph graph;
};

const ir::Graph& models::graph_of(const Network& network) {
  return network.impl().graph;
}

Network models::make_network(ir::Graph graph) {
  return Network(std::make_shared<const Network::Impl>(Network::Impl{std::move(graph)}));
}

namespace {

std::vector<PortInfo> port_infos(const ir::Graph& graph, const std::vector<ir::Port>& ports) {
  std::vector<PortInfo> infos;
  for (const ir::Port& port : ports) {
    const ir::Tensor& tensor = graph.tensor(port.tensor);
    infos.push_back({port.name, from_ir(tensor.dtype), tensor.shape.dims(), port.evaluation_only});
  }
  return infos;
}

/// Whether `text` from `t` on is what `pattern` from `p` on says.
bool matches(const std::string& pattern, const std::string& text) {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string::npos, tried = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      tried = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      // The last star takes one letter more.
      p = star + 1;
      t = ++tried;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace

const std::string& Network::name() const {
  return impl_->graph.name;
}

std::vector<PortInfo> Network::inputs() const {
  return port_infos(impl_->graph, impl_->graph.inputs);
}

std::vector<PortInfo> Network::outputs() const {
  return port_infos(impl_->graph, impl_->graph.outputs);
}

std::vector<ParameterInfo> Network::parameters() const {
  std::vector<ParameterInfo> infos;
  for (const ir::Carried& state : impl_->graph.carried) {
    const ir::Tensor& tensor = impl_->graph.tensor(state.begin);
    infos.push_back({tensor.name, tensor.shape.dims(), tensor.role == ir::Role::parameter});
  }
  return infos;
}

bool Network::has_loss() const {
  return impl_->graph.loss != ir::kNone;
}

Network Network::freeze(const std::string& pattern) const {
  ir::Graph graph = impl_->graph;
  bool found = false;
  for (const ir::Carried& state : graph.carried) {
    ir::Tensor& tensor = graph.tensor(state.begin);
    if (tensor.role != ir::Role::parameter || !matches(pattern, tensor.name)) continue;
    tensor.role = ir::Role::buffer;
    found = true;
  }
  if (!found) {
    throw UserError(fmt::format("no parameter of {} that is trained matches '{}'", graph.name, pattern));
  }
  return models::make_network(std::move(graph));
}

}  // namespace penstock
