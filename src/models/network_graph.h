#pragma once

#include "ir/graph.h"
#include "penstock/network.h"

namespace penstock::models {

/// The forward graph that training and evaluation are made of (lower::for_training(), for_evaluation()).
const ir::Graph& graph_of(const Network& network);
/// A network of a forward graph.
Network make_network(ir::Graph graph);

}  // namespace penstock::models
