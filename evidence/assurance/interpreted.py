"""Run kernels as plain Python, so that a mutated one need not be compiled.

Compiling a solver takes tens of seconds, a test on 18 rows takes one. Only the mutants use this:
the tests themselves run compiled kernels.
"""

from typing import Any

import numpy as np


def interpret() -> None:
    """Switch numba's compiler off and give the selection contract a dispatch of its own.

    To be called before the package's modules are imported.
    """
    from numba import config

    config.DISABLE_JIT = True
    # Kernels wrap around and cast in silence.
    np.seterr(over="ignore", invalid="ignore")
    from dplasso.selection import contract

    kernels: dict[type, dict[str, Any]] = {}

    def register(
        state_class: type,
        select_kernel: Any,
        update_kernel: Any,
        rebuild_kernel: Any,
        granularity_kernel: Any = contract.every_change,
        update_many_kernel: Any = None,
    ) -> None:
        def one_by_one(selector: Any, alpha: Any, changed: Any, old: Any, count: int) -> None:
            for m in range(count):
                update_kernel(selector, alpha, changed[m], old[m], alpha[changed[m]])

        kernels[state_class] = {
            "select": select_kernel,
            "update": update_kernel,
            "update_many": update_many_kernel or one_by_one,
            "rebuild": rebuild_kernel,
            "granularity": granularity_kernel,
        }

    def dispatch(duty: str) -> Any:
        def call(selector: Any, *given: Any) -> Any:
            return kernels[type(selector)][duty](selector, *given)

        return call

    contract.register = register
    for duty in ("select", "update", "update_many", "rebuild", "granularity"):
        setattr(contract, duty, dispatch(duty))

    from dplasso.frank_wolfe import state

    new_rows = state.new_rows

    def records_with_attributes(*given: Any) -> Any:
        return new_rows(*given).view(np.recarray)

    # Kernels read a record's fields as attributes, which plain numpy offers for these only.
    state.new_rows = records_with_attributes
