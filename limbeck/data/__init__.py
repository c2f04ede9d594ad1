"""What comes in: a declared schema, readers of files, and a catalogue of known datasets."""

from limbeck.data.catalogue import entry, known, load
from limbeck.data.images import Images
from limbeck.data.readers import read
from limbeck.data.schema import ImageSchema

__all__ = ["ImageSchema", "Images", "entry", "known", "load", "read"]
