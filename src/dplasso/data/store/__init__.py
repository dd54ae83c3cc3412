"""Data sets on disk that are mapped into memory; ``docs/store.md`` describes the format."""

from dplasso.data.store.files import NAMES as NAMES
from dplasso.data.store.files import names_in as names_in
from dplasso.data.store.opening import Store as Store
from dplasso.data.store.opening import check_entries as check_entries
from dplasso.data.store.opening import describe as describe
from dplasso.data.store.opening import is_store as is_store
from dplasso.data.store.opening import open_store as open_store
from dplasso.data.store.writer import write_blocks as write_blocks
