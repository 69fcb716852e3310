"""What training within a budget is like, before or while it happens."""

import html

from . import _core
from .networks import network_of
from .optimizers import core_of
from .options import session_options
from .sizes import text_of


def tokens_of(network):
    """The tokens of a sample of text; 0 of any other network."""
    first = network.inputs[0] if network.inputs else None
    return first.shape[1] if first is not None and first.dtype == "int32" and len(first.shape) == 2 else 0


class Plan:
    """What one budget, or several, would give; prints as `penstock plan` does.

    `budgets` has a forecast for each budget; the figures of the first are attributes of the plan too.
    """

    def __init__(self, network, batch, budgets, table=None, named=True, tokens=0):
        self.network, self.batch, self.budgets, self.table, self._named = network, batch, budgets, table, named
        self._tokens = tokens

    def __getattr__(self, name):
        if name.startswith("_") or not self.budgets:
            raise AttributeError(name)
        return getattr(self.budgets[0], name)

    def __str__(self):
        if self._named:
            text = self.budgets[0].text(self.network, self.batch, self._tokens) if self.budgets[0].feasible else self._refusal() + "\n"
        else:
            text = self.table.text(self.batch, self._tokens)
        if self.table is not None:
            if self.table.largest_batch >= 2**62:
                text += f"any batch fits {text_of(self.budgets[0].budget_bytes)}\n"
            elif self.table.largest_batch > 0:
                space = f" and {text_of(self.table.swap_space_bytes)} of swap space" if self.table.swap_space_bytes else ""
                text += f"the largest batch within {text_of(self.budgets[0].budget_bytes)}{space} is {self.table.largest_batch}\n"
            text += "".join(line + "\n" for line in self.table.explanation)
        return text.rstrip("\n")

    __repr__ = __str__

    def _refusal(self):
        return (f"{self.network} batch {self.batch} cannot train within {text_of(self.budgets[0].budget_bytes)}; name "
                f"{self.table.smallest_bytes // 2**20}MiB or more")

    def _repr_html_(self):
        head = ("budget", "peak", "samples/s", "of the speed in memory", "computed again", "out and in per step")
        rows = []
        for row in self.budgets:
            if not row.feasible:
                rows.append((text_of(row.budget_bytes), "does not fit", "", "", "", ""))
                continue
            seconds = row.step.step_seconds
            rows.append((text_of(row.budget_bytes), text_of(row.peak_bytes), f"{self.batch / seconds:.2f}" if seconds else "",
                         f"{100 * row.in_memory_share:.0f} %" if row.in_memory_share else "", f"{row.recomputed_ops} ops",
                         f"{text_of(row.step.swapped_out_bytes)} and {text_of(row.step.swapped_in_bytes)}"))
        cells = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return (f"<b>{html.escape(self.network)}</b>, batch {self.batch}<table><tr>" +
                "".join(f"<th>{name}</th>" for name in head) + f"</tr>{cells}</table>")


def plan(model, *, batch=None, memory=None, process_memory=None, example=None, loss=None, optimizer=None, channels=0,
         image_size=0, classes=0, sequence=0, accumulate=1, largest_batch=False, explain=None, save=None, **options):
    """What a session with the same arguments would do; trains nothing. Without a budget it is a table over budgets.

    >>> import penstock as ps
    >>> plan = ps.plan("lenet", batch=8, memory="64MiB")
    >>> plan.feasible, plan.peak_bytes < 64 * 2**20
    (True, True)
    """
    sizes = dict(channels=channels, image_size=image_size, classes=classes, sequence=sequence)
    network = network_of(model, batch=batch, example=example, loss=loss, accumulate=accumulate, **sizes).network
    shape = network.inputs[0].shape if network.inputs else ()
    micro = shape[0] if shape else 1
    if largest_batch and not isinstance(model, str):
        raise _core.UserError("largest_batch needs a model by name: another network is made for one batch")
    named = memory is not None or process_memory is not None
    if not named and (largest_batch or explain or save):
        raise _core.UserError("largest_batch, explain and save need a budget: give memory= or process_memory=")

    def network_of_batch(size):
        if size == micro:
            return network
        return network_of(model, batch=size, example=None, **sizes).network

    table = _core.forecast(network_of_batch, micro, core_of(optimizer),
                           session_options(memory=memory, process_memory=process_memory, accumulate=accumulate, **options),
                           largest_batch, explain or "", str(save or ""))
    return Plan(network.name, accumulate * micro, table.budgets, table, named, tokens_of(network))
