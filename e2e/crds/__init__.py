"""What the API server itself makes of our custom resources."""
