#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <penstock/errors.h>
#include <penstock/options.h>
#include <penstock/ranks.h>

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {
namespace {

using Policies = std::vector<std::pair<std::string, Policy>>;
const Policies kPolicies{{"auto", Policy::automatic}, {"keep", Policy::keep},
                         {"lms", Policy::lms},        {"superneurons", Policy::superneurons},
                         {"pooch", Policy::pooch},    {"window", Policy::window}};

Optimizer make_optimizer(const std::string& kind, double learning_rate, float momentum, bool nesterov,
                         float weight_decay, float beta1, float beta2, float epsilon, float clip_norm,
                         const std::string& decay, const std::string& moments) {
  Optimizer optimizer;
  optimizer.kind = choice<OptimizerKind>(
      "optimizer", kind,
      {{"sgd", OptimizerKind::sgd}, {"adam", OptimizerKind::adam}, {"adamw", OptimizerKind::adamw}});
  optimizer.learning_rate = learning_rate;
  optimizer.momentum = momentum;
  optimizer.nesterov = nesterov;
  optimizer.weight_decay = weight_decay;
  optimizer.beta1 = beta1;
  optimizer.beta2 = beta2;
  optimizer.epsilon = epsilon;
  optimizer.clip_norm = clip_norm;
  optimizer.decay_matrices_only = choice<bool>("decay", decay, {{"all", false}, {"matrices", true}});
  optimizer.moments =
      choice<MomentType>("moments", moments, {{"float32", MomentType::f32}, {"bfloat16", MomentType::bf16}});
  return optimizer;
}

/// The processes of this run, joined once; nothing is joined where mpirun did not start it.
std::shared_ptr<Ranks>& joined() {
  static std::shared_ptr<Ranks> ranks;
  return ranks;
}

}  // namespace

void bind_options(nb::module_& module) {
  nb::class_<Optimizer>(module, "Optimizer")
      .def(
          "__init__",
          [](Optimizer* self, const std::string& kind, double learning_rate, float momentum, bool nesterov,
             float weight_decay, float beta1, float beta2, float epsilon, float clip_norm,
             const std::string& decay, const std::string& moments) {
            new (self) Optimizer(make_optimizer(kind, learning_rate, momentum, nesterov, weight_decay, beta1,
                                                beta2, epsilon, clip_norm, decay, moments));
          },
          "kind"_a, "learning_rate"_a = 0.0, "momentum"_a = 0.0F, "nesterov"_a = false,
          "weight_decay"_a = 0.0F, "beta1"_a = 0.9F, "beta2"_a = 0.999F, "epsilon"_a = 1e-8F,
          "clip_norm"_a = 0.0F, "decay"_a = "all", "moments"_a = "float32");

  nb::class_<Ranks>(module, "Ranks")
      .def_prop_ro("rank", &Ranks::rank)
      .def_prop_ro("size", &Ranks::size)
      .def("abort", &Ranks::abort, "exit_code"_a);
  module.def("launched_rank", &launched_rank);
  module.def("join_ranks", [] {
    if (!joined()) joined() = join_ranks();
    return nb::cast(joined().get(), nb::rv_policy::reference);
  });
  module.def("leave_ranks", [] { joined().reset(); });

  nb::class_<SessionOptions>(module, "Options", "What a session is told beside network and optimizer.")
      .def(nb::init<>())
      .def_rw("seed", &SessionOptions::seed)
      .def_rw("threads", &SessionOptions::threads)
      .def_rw("training", &SessionOptions::training)
      .def_rw("evaluation", &SessionOptions::evaluation)
      .def_rw("record", &SessionOptions::record)
      .def_rw("reserved_bytes", &SessionOptions::reserved_bytes)
      .def("set_budget",
           [](SessionOptions& o, std::int64_t bytes, bool of_process) {
             o.memory.budget_bytes = bytes;
             o.memory.scope = of_process ? BudgetScope::process : BudgetScope::session;
           })
      .def("set_policy", [](SessionOptions& o,
                            const std::string& name) { o.memory.policy = choice("policy", name, kPolicies); })
      .def("set_pool",
           [](SessionOptions& o, const std::string& name) {
             o.memory.pool =
                 choice<PoolKind>("pool", name, {{"packed", PoolKind::packed}, {"virtual", PoolKind::paged}});
           })
      .def(
          "set_tier",
          [](SessionOptions& o, const std::string& name) {
            o.memory.tier = choice<TierKind>(
                "tier", name,
                {{"disk", TierKind::disk}, {"disk-threads", TierKind::disk_threads}, {"ram", TierKind::ram}});
          })
      .def("set_verify",
           [](SessionOptions& o, const std::string& name) {
             o.memory.verify = choice<VerifyMode>(
                 "verify", name,
                 {{"off", VerifyMode::off}, {"sampled", VerifyMode::sampled}, {"full", VerifyMode::full}});
           })
      .def("set_kernels",
           [](SessionOptions& o, const std::string& name) {
             o.memory.dynamic_kernels = choice<bool>("kernels", name, {{"fixed", false}, {"dynamic", true}});
           })
      .def("set_profile",
           [](SessionOptions& o, const std::string& name) {
             o.memory.profile = name == "cached"  ? ProfileSource::cached
                                : name == "fresh" ? ProfileSource::fresh
                                                  : ProfileSource::file;
             if (o.memory.profile == ProfileSource::file) o.memory.profile_file = name;
           })
      .def("set_swap_dir", [](SessionOptions& o, const std::string& dir) { o.memory.swap_dir = dir; })
      .def("set_swap_space", [](SessionOptions& o, std::int64_t bytes) { o.memory.swap_space_bytes = bytes; })
      .def("set_accumulate", [](SessionOptions& o, std::int64_t count) { o.accumulate = count; })
      .def("set_bands", [](SessionOptions& o, std::int64_t bands) { o.memory.bands = bands; })
      .def("set_slice_samples",
           [](SessionOptions& o, std::int64_t samples) { o.memory.slice_samples = samples; })
      .def("set_plan_file", [](SessionOptions& o, const std::string& path) { o.memory.plan_file = path; })
      .def("set_on_note", [](SessionOptions& o,
                             std::function<void(const std::string&)> tell) { o.on_note = std::move(tell); })
      .def(
          "use_ranks",
          [](SessionOptions& o, bool shard) {
            if (!joined()) joined() = join_ranks();
            o.ranks.ranks = joined();
            o.ranks.shard_optimizer = shard;
          },
          "shard_optimizer"_a = false);
}

}  // namespace penstock::python
