"""Files: streamed safetensors and outputs that appear whole or not at all."""

from narrowcast.storage.atomic import AtomicFile, atomic_output
from narrowcast.storage.dtypes import StoredType, stored_type
from narrowcast.storage.header import TensorEntry, parse_header
from narrowcast.storage.reader import SafeTensorsFile, open_safetensors
from narrowcast.storage.writer import SafeTensorsWriter, save_tensors

__all__ = [
    "AtomicFile",
    "SafeTensorsFile",
    "SafeTensorsWriter",
    "StoredType",
    "TensorEntry",
    "atomic_output",
    "open_safetensors",
    "parse_header",
    "save_tensors",
    "stored_type",
]
