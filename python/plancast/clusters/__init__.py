"""Jobs that share the network of a cluster."""
