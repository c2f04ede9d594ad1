"""Tables: a declared schema, the columns it is made of, and rows as numbers."""
