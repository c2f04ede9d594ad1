"""What comes in: a declared schema, readers of files, and a catalogue of known datasets."""

from limbeck.data.catalogue import entry, known, load
from limbeck.data.declared import Schema, load_schema, of_images, schema_of
from limbeck.data.images import Images
from limbeck.data.readers import read
from limbeck.data.schema import ImageSchema
from limbeck.data.tables.schema import TableSchema
from limbeck.data.tables.table import Table, read_table

__all__ = [
    "ImageSchema",
    "Images",
    "Schema",
    "Table",
    "TableSchema",
    "entry",
    "known",
    "load",
    "load_schema",
    "of_images",
    "read",
    "read_table",
    "schema_of",
]
