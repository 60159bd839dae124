"""The compiled core: arrays in, arrays out."""
