#pragma once

#include "ir/graph.h"
#include "models/models.h"
#include "penstock/penstock.h"

namespace penstock::training {

/// What kind of data a network wants: that of its model, with the sizes its own network or the caller gave.
models::ModelInfo network_info(const Network& network);

/// The network's forward graph with its loss, for images of the given sizes.
ir::Graph build_network(const Network& network, const models::ModelOptions& options);

}  // namespace penstock::training
