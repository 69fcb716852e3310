#include "session/program.h"

#include "autodiff/backward.h"
#include "models/network_graph.h"
#include "penstock/session.h"
#include "session/optimizer.h"

namespace penstock {

std::int64_t slice_samples(const Network& network, const MemoryOptions& options) {
  return options.slice_samples ? *options.slice_samples : lower::default_slice(models::graph_of(network));
}

namespace session {

ir::Graph training_graph(const Network& network, const Optimizer& optimizer, bool repeat_cheap) {
  ir::Graph graph = lower::fuse(lower::for_training(models::graph_of(network)));
  autodiff::append_backward(graph, graph.loss,
                            [&optimizer](ir::Graph& step, ir::TensorId parameter, ir::TensorId gradient) {
                              append_update(step, parameter, gradient, optimizer);
                            });
  if (repeat_cheap) graph = lower::repeat_cheap(std::move(graph));
  graph = lower::slice_updates(std::move(graph));
  ir::verify(graph);
  return graph;
}

Program make_program(const Network& network, const ProgramRequest& request) {
  Program program;
  program.backend = kernels::make_cpu_backend();
  const std::int64_t bands =
      request.bands ? *request.bands : lower::default_bands(models::graph_of(network), request.slice_samples);
  if (request.optimizer != nullptr) {
    lower::LowerOptions how;
    how.exchange = request.exchange;
    how.clip_norm = request.optimizer->clip_norm;
    lower::BatchCut cut{request.slice_samples};
    if (request.accumulate > 1) cut.inputs = lower::CutInputs::whole;
    // Bands are for one image that is too wide: all of them are cut alike.
    cut.by_width = bands == 1;
    ir::Graph step = lower::cut_batch(training_graph(network, *request.optimizer, request.repeat_cheap), cut);
    step = lower::accumulate(lower::cut_images(std::move(step), bands), request.accumulate);
    program.training = std::make_unique<lower::Executable>(lower::lower(step, *program.backend, how));
    if (request.variants) lower::add_variants(*program.training, *program.backend);
  }
  if (request.evaluation) {
    const ir::Graph graph =
        lower::cut_images(lower::cut_batch(lower::fuse(lower::for_evaluation(models::graph_of(network))),
                                           {request.slice_samples}),
                          bands);
    program.evaluation = std::make_unique<lower::Executable>(
        lower::lower(graph, *program.backend, {}, program.training.get()));
    if (program.training) lower::share_state(*program.evaluation, *program.training);
  }
  return program;
}

}  // namespace session
}  // namespace penstock
