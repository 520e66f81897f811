"""The tool kinds, one module each; others plug in by the entry point group `noetl.tools`."""
