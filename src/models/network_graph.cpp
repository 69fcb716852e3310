#include "models/network_graph.h"

#include "models/models.h"

namespace penstock {

struct Network::Impl {
  ir::Graph graph;
};

Network Network::model(const std::string& name, const ModelOptions& options) {
  return Network(std::make_shared<Impl>(Impl{models::build_model(name, options)}));
}

const std::string& Network::name() const {
  return impl_->graph.name;
}

namespace models {

Network make_network(ir::Graph graph) {
  return Network(std::make_shared<Network::Impl>(Network::Impl{std::move(graph)}));
}

const ir::Graph& graph_of(const Network& network) {
  return network.impl().graph;
}
}  // namespace models
}  // namespace penstock
