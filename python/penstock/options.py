"""What a session is told beside network and optimizer."""

import os

from . import _core, ranks
from .sizes import bytes_of


def session_options(*, memory=None, process_memory=None, seed=0, threads=0, policy=None, pool=None, tier="disk",
                    swap_dir=None, swap_space=None, slice_samples=None, bands=None, accumulate=1, verify="sampled", kernels="fixed", profile="cached", plan=None, training=True,
                    evaluation=True, record=True, shard_optimizer=False, on_note=None):
    if memory is not None and process_memory is not None:
        raise _core.UserError("give memory= (what the session adds) or process_memory= (the whole process), not both")
    options = _core.Options()
    if memory is not None:
        options.set_budget(bytes_of(memory), False)
    elif process_memory is not None:
        options.set_budget(bytes_of(process_memory, "process_memory"), True)
    options.seed, options.threads = seed, threads
    options.training, options.evaluation, options.record = training, evaluation, record
    if policy is not None:
        options.set_policy(policy)
    if pool is not None:
        options.set_pool(pool)
    options.set_tier(tier)
    options.set_verify(verify)
    options.set_kernels(kernels)
    options.set_profile(os.fspath(profile))
    if swap_dir is not None:
        options.set_swap_dir(os.fspath(swap_dir))
    if swap_space is not None:
        options.set_swap_space(bytes_of(swap_space, "swap_space"))
    if slice_samples is not None:
        options.set_slice_samples(slice_samples)
    if bands is not None:
        options.set_bands(bands)
    options.set_accumulate(accumulate)
    if plan is not None:
        options.set_plan_file(os.fspath(plan))
    if on_note is not None:
        options.set_on_note(on_note)
    ranks.join()
    options.use_ranks(shard_optimizer)
    return options
