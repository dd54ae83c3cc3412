"""Addresses of data on object storage, such as s3://bucket/a.store, and what messages may show."""

import re

from dplasso.errors import DataError

_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]{0,15}")
# A scheme, a host, perhaps its port, and a path. Whatever else an address can hold can be a secret:
# a user, a password or token, parameters, a signature, a fragment, or one of these in disguise (%).
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^@:/?#;&%]*(:[0-9]{1,5})?(/[^@:?#;&%]*)?")
# An option that its value follows, and words such as those of a purpose.
_BEFORE = re.compile(r"(--[a-z0-9-]+=)?([\w,. ]* )?")


def is_address(path: str) -> bool:
    """Return whether a store is at an address such as s3://bucket/a, not in a local folder."""
    return "://" in path


def hidden(address: str) -> str:
    """Return what a message may show of an address that may hold a secret."""
    scheme = address.partition("://")[0]
    return f"{scheme if _SCHEME.fullmatch(scheme) else '...'}://..."


def checked_address(address: str) -> str:
    """Return an address without slashes at its end; DataError if it may hold a secret."""
    if not (_PLAIN.fullmatch(address) and address.isprintable()):
        raise DataError(
            f"an address {hidden(address)} holds more than a scheme, a host and a path, and logs "
            "and messages would show it: leave out names, passwords, tokens and signatures, and "
            "give them as fsspec finds them, in the environment or in its configuration files"
        )
    return address.rstrip("/")


def check_argument(text: str) -> None:
    """Raise `DataError` if an argument of a command line is an address that may hold a secret."""
    if is_address(text):
        checked_address(_BEFORE.sub("", text, count=1))
