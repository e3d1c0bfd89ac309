"""From files to tensors: panels, readers, checks, catalogue, splits and windows. No neural network here."""
