"""Training of networks: what is minimised when, in which order, and how it survives being killed."""
