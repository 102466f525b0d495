"""Archives of many members: fields, particles and arrays of any type, each with a bound and a certificate of its own."""
