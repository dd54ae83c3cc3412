"""Bring memory into the cache before a kernel needs it."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray


def prefetch(array: NDArray[Any], place: int) -> None:
    """Request the cache line of an element of an array with one axis; interpreted, do nothing."""


@overload(prefetch, strict=False)
def _compiled(*_: Any) -> Any:
    return lambda array, place: _request(array, place)


def _prefetch(_context: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        line = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        declared = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        insert: Any = cgutils.get_or_insert_function
        function = insert(builder.module, declared, "llvm.prefetch.p0i8")
        # To read, into the second cache: the first holds few lines. Data, not instructions.
        builder.call(function, [line, word(0), word(2), word(1)])
        return context.get_dummy_value()

    return types.void(array, place), generate


_request: Any = intrinsic(_prefetch)
