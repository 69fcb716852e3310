#include "train/program.h"

#include "autodiff/backward.h"
#include "train/network.h"

namespace penstock::training {

ir::Graph training_graph(const Network& network, const models::ModelOptions& options,
                         const OptimizerOptions& optimizer) {
  ir::Graph graph = lower::fuse(lower::for_training(build_network(network, options)));
  autodiff::append_backward(graph, graph.loss,
                            [&optimizer](ir::Graph& step, ir::TensorId parameter, ir::TensorId gradient) {
                              append_update(step, parameter, gradient, optimizer);
                            });
  graph = lower::slice_updates(lower::repeat_norms(std::move(graph)));
  ir::verify(graph);
  return graph;
}

Program make_program(const Network& network, const models::ModelOptions& options,
                     const OptimizerOptions* optimizer, bool evaluation,
                     const lower::ExchangeOptions& exchange, bool variants) {
  Program program;
  program.backend = kernels::make_cpu_backend();
  if (optimizer != nullptr) {
    lower::LowerOptions how;
    how.exchange = exchange;
    program.training = std::make_unique<lower::Executable>(
        lower::lower(training_graph(network, options, *optimizer), *program.backend, how));
    if (variants) lower::add_variants(*program.training, *program.backend);
  }
  if (evaluation) {
    const ir::Graph graph = lower::fuse(lower::for_evaluation(build_network(network, options)));
    program.evaluation = std::make_unique<lower::Executable>(
        lower::lower(graph, *program.backend, {}, program.training.get()));
    if (program.training) lower::share_state(*program.evaluation, *program.training);
  }
  return program;
}

}  // namespace penstock::training
