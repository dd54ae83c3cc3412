"""Read signatures and docstrings off this package's sources: importing them may take seconds."""

import ast
from functools import cache
from importlib import import_module
from inspect import Parameter, Signature
from pkgutil import get_data
from typing import Any


class StandIn(type):
    """A function or class that was read, not imported: its docstring, signature and constants."""

    names: "Names"
    node: ast.FunctionDef | ast.ClassDef

    @property
    def __signature__(cls) -> Signature:
        """Return what `inspect.signature` says of the function, the class or the dataclass."""
        parts = {one.name: one for one in cls.node.body if isinstance(one, ast.FunctionDef)}
        made = parts.get("__init__", cls.node)
        if isinstance(made, ast.ClassDef):
            return Signature(list(cls._fields().values()))
        positional, keywords, value = made.args.args, made.args.kwonlyargs, cls.names.value
        padding: list[ast.expr | None] = [None] * (len(positional) - len(made.args.defaults))
        defaults = [*padding, *made.args.defaults, *made.args.kw_defaults]
        parameters = [
            _keyword(one.arg, value(one.annotation), value(default))
            for one, default in zip([*positional, *keywords], defaults, strict=True)
            if one.arg != "self"
        ]
        # Whether there is one is all that is asked of what is returned.
        nothing = isinstance(made.returns, ast.Constant) and made.returns.value is None
        return Signature(parameters, return_annotation=None if nothing else Signature.empty)

    def _fields(cls) -> dict[str, Parameter]:
        assert isinstance(cls.node, ast.ClassDef)
        found: dict[str, Parameter] = {}
        for base in cls.node.bases:
            found |= cls.names.value(base)._fields()
        for one in cls.node.body:
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                name, value = one.target.id, cls.names.value
                found[name] = _keyword(name, value(one.annotation), value(one.value))
        return found

    def load(cls) -> Any:
        """Import what this stands for."""
        return getattr(import_module(cls.__module__), cls.__name__)


def _keyword(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


class Names(dict[str, Any]):
    """The values of a module's names, each found when it is first asked for.

    Functions and classes of this package are stand-ins; modules beside it are imported.
    """

    def __init__(self, module: str) -> None:
        self.module, self._found = module, dict[str, Any]()
        for one in ast.parse(_source(module)).body:
            if isinstance(one, ast.FunctionDef | ast.ClassDef):
                self._found[one.name] = one
            elif isinstance(one, ast.ImportFrom):
                self._found |= {to.asname or to.name: (one.module, to.name) for to in one.names}
            elif isinstance(one, ast.Assign | ast.AnnAssign):
                targets = one.targets if isinstance(one, ast.Assign) else [one.target]
                self._found |= {to.id: one.value for to in targets if isinstance(to, ast.Name)}

    def __missing__(self, name: str) -> Any:
        one = self._found[name]
        if isinstance(one, tuple):
            module, original = one
            ours = module.split(".")[0] == __package__.split(".")[0]
            value = names_of(module)[original] if ours else getattr(import_module(module), original)
        elif isinstance(one, ast.FunctionDef | ast.ClassDef):
            value = StandIn(name, (), self._members(one))
        else:
            value = self.value(one)
        self[name] = value
        return value

    def _members(self, node: ast.FunctionDef | ast.ClassDef) -> dict[str, Any]:
        constants = {
            one.target.id: one.value.value
            for one in (node.body if isinstance(node, ast.ClassDef) else [])
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            if isinstance(one.value, ast.Constant)
        }
        about = {"__doc__": ast.get_docstring(node), "__module__": self.module}
        return constants | about | {"names": self, "node": node}

    def value(self, expression: ast.expr | None) -> Any:
        """Return what an expression of the module comes to; `Parameter.empty` for none."""
        if expression is None:
            return Parameter.empty
        return eval(compile(ast.Expression(expression), self.module, "eval"), {}, self)


@cache
def names_of(module: str) -> Names:
    """Return the names of a module of this package."""
    return Names(module)


def _source(module: str) -> bytes:
    package, _, path = module.partition(".")
    path = path.replace(".", "/")
    try:
        found = get_data(package, f"{path}.py")
    except FileNotFoundError:
        found = get_data(package, f"{path}/__init__.py")
    assert found is not None
    return found
