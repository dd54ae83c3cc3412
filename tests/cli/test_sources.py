"""What is read off the sources, to answer ``--help`` at once, is what importing them would say."""

from inspect import getdoc, signature

import pytest

from cli.conftest import every_command
from dplasso.cli.options import Chosen, StandIn, names_of

COMMANDS = {" ".join(words): command.home for words, command in every_command().items()}
ESTIMATORS = {
    f"{method} {number}": estimator
    for method, kinds in names_of("dplasso.estimators.cost")["METHODS"].items()
    for number, estimator in enumerate(kinds)
    if estimator is not None
}


def check_alike(read, imported):
    """Compare docstring and parameters, also those of the dataclasses among them."""
    assert read.__doc__ == getdoc(imported)
    found, real = signature(read).parameters, signature(imported).parameters
    assert list(found) == list(real)
    for one, other in zip(found.values(), real.values(), strict=True):
        assert str(one.annotation) == str(other.annotation)
        if isinstance(one.annotation, StandIn):
            check_alike(one.annotation, other.annotation)
        elif one.annotation != Chosen:
            assert one.default == other.default


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_read_as_it_is(name):
    read = COMMANDS[name]
    imported = read.load()
    check_alike(read, imported)
    prints = signature(imported).return_annotation is not None
    assert (signature(read).return_annotation is not None) == prints


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_read_as_it_is(name):
    check_alike(ESTIMATORS[name], ESTIMATORS[name].load())
