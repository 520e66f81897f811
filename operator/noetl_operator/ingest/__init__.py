"""Where workers come to: the HTTP side of the operator."""
