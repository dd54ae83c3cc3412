"""A secret in an address is refused wherever the address stands, and no message shows it."""

import pytest

from cli.conftest import every_command, refused, run_command

SECRET = "s3://AKIAEXAMPLE:wJalrXUtn@bucket/a"
COMMANDS = every_command()


def test_there_are_commands_with_options():
    assert ("fit",) in COMMANDS
    assert ("ledger", "add") in COMMANDS
    names = {name for one in COMMANDS.values() for option in one.params for name in option.opts}
    assert {"model", "--model", "--checkpoint", "--ledger", "--prior", "--schema"} <= names
    assert "--purpose" in names


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_secret_in_any_argument_or_option_is_refused_and_not_shown(words):
    texts = {("--no-such-option", SECRET), (f"--no-such-option={SECRET}",), ("--", SECRET)}
    for parameter in COMMANDS[words].params:
        if parameter.param_type_name == "argument":
            texts |= {(SECRET,), ("other", SECRET)}
        else:
            names = (*parameter.opts, *parameter.secondary_opts)
            texts |= {given for name in names for given in ((name, SECRET), (f"{name}={SECRET}",))}
    for given in texts:
        result = run_command(*words, *given)
        refused(result, "an address s3://... holds more than a scheme, a host and a path")
        assert not any(part in result.output for part in ("AKIA", "wJalr", "XUtn"))


@pytest.mark.parametrize("given", [(SECRET,), (f"--no-such-option={SECRET}",)])
def test_also_in_place_of_a_command(given):
    result = run_command(*given)
    refused(result, "an address s3://... holds more than")
    assert "XUtn" not in result.output


@pytest.mark.parametrize(
    "text",
    [
        *("s3://bucket/a.store", "--cluster=ray://head:10001", "file:///a b.store"),
        *("see https://wiki.example.org/fits for why", "no:address@all", "-1,1"),
    ],
)
def test_what_holds_none_is_taken(text):
    assert "holds more than" not in run_command(text).output
